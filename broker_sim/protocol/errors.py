"""The one exception of the wire protocol."""


class ProtocolError(ValueError):
    """Bytes that are not the message they should be, or a message that has no such bytes.

    The text names the message, its version and, where it is known, the field. A broker
    closes the connection on it, as Kafka does on InvalidRequestException and
    SchemaException.
    """
