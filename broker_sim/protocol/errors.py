"""The one exception of the wire protocol."""


class ProtocolError(ValueError):
    """Bytes that cannot be decoded, or a message that cannot be encoded.

    The text has the message's name, its version and, if known, the field. A broker then closes the
    connection, as Kafka does on InvalidRequestException and SchemaException.
    """
