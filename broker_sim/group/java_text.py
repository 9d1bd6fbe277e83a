"""Texts as Java sees them, where a limit or an order of Kafka depends on it."""

from __future__ import annotations

__all__ = ["java_length", "text_order"]


def java_length(text: str) -> int:
    """Return the length of a text in units of UTF-16."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def text_order(text: str) -> bytes:
    """Return what texts are sorted by to stand as `String.compareTo` orders them: units of UTF-16."""
    return text.encode("utf-16-be", "surrogatepass")
