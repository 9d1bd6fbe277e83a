"""Ids of 16 bytes; mirrors Kafka's `Uuid`. Python's `uuid` would cost each start its import."""

from base64 import urlsafe_b64encode
from typing import Final

_FIXED_BITS: Final = 0xF << 76 | 0x3 << 62
_VERSION_4: Final = 0x4 << 76 | 0x2 << 62


def version_4(random_bits: bytes) -> bytes:
    """Return 16 random bytes as a UUID of version 4."""
    return (int.from_bytes(random_bits, "big") & ~_FIXED_BITS | _VERSION_4).to_bytes(16, "big")


def uuid_text(raw: bytes) -> str:
    """Return an id in Kafka's text form: URL-safe base 64 without padding, 22 characters."""
    return urlsafe_b64encode(raw).decode().rstrip("=")
