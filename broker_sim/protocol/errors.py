"""The one exception of the wire protocol."""


class ProtocolError(ValueError):
    """Bytes that cannot be decoded, or a message that cannot be encoded.

    The text names the message, its version and, where it is known, the field. A broker
    closes the connection on it, as Kafka does on InvalidRequestException and
    SchemaException.
    """
