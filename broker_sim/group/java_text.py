"""Texts as Java sees them, where what Kafka does depends on it."""

from __future__ import annotations

from typing import Final

_TRIMMED: Final = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that `String.trim` takes away: blanks and control characters of ASCII, no other space."""


def java_length(text: str) -> int:
    """Return the length of a text in units of UTF-16."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def java_trim(text: str) -> str:
    """Return the text without what `String.trim` takes away at its ends."""
    return text.strip(_TRIMMED)


def text_order(text: str) -> bytes:
    """Return what texts are sorted by to stand as `String.compareTo` orders them: units of UTF-16."""
    return text.encode("utf-16-be", "surrogatepass")
