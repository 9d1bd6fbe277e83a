"""Ids of 16 bytes as text; mirrors Kafka's `Uuid.toString`."""

from base64 import urlsafe_b64encode


def uuid_text(raw: bytes) -> str:
    """Return an id in Kafka's text form: URL-safe base 64 without padding, 22 characters."""
    return urlsafe_b64encode(raw).decode().rstrip("=")
