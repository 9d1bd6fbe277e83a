"""Texts as Java sees them, where a limit of Kafka depends on it."""

from __future__ import annotations

__all__ = ["java_length"]


def java_length(text: str) -> int:
    """Return the length of a text in units of UTF-16."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
