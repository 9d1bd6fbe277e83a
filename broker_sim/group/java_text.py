"""String functions with Java's semantics, on which Kafka's behaviour depends."""

from __future__ import annotations

from typing import Final

_TRIMMED: Final = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that `String.trim` removes: ASCII space and control characters, but no other white space."""


def java_length(text: str) -> int:
    """Return the length of a string in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def java_trim(text: str) -> str:
    """Return `String.trim` of the text."""
    return text.strip(_TRIMMED)


def text_order(text: str) -> bytes:
    """Return a sort key with the order of `String.compareTo`: UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
