"""Configurations that are set for one listener: `listener.name.NAME.`, in lower case, and Kafka's name.

That of a mechanism has its name in between: `listener.name.outside.plain.sasl.jaas.config`. Mirrors
`ListenerName.configPrefix` and `ChannelBuilders.channelBuilderConfigs`.
"""

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "listener.name."
PER_LISTENER: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""May be changed at run time for a single listener only."""
CONNECTION_LIMITS: Final = frozenset({"max.connection.creation.rate", "max.connections"})
"""May be set for a listener of all brokers, and changed at run time."""
JAAS_CONFIG: Final = "sasl.jaas.config"
SERVER_HANDLER: Final = "sasl.server.callback.handler.class"
_OAUTHBEARER: Final = "org.apache.kafka.common.security.oauthbearer"
SIGNED_TOKEN_HANDLERS: Final = (
    f"{_OAUTHBEARER}.OAuthBearerValidatorCallbackHandler",
    f"{_OAUTHBEARER}.secured.OAuthBearerValidatorCallbackHandler",
)
"""Kafka's handler for signed tokens, under its new name and its old one: the only ones that count."""
OF_MECHANISMS: Final = frozenset(
    {JAAS_CONFIG, "connections.max.reauth.ms", "sasl.login.callback.handler.class", "sasl.login.class", SERVER_HANDLER}
)
"""What may be set for a single mechanism."""


def listener_values(values: Mapping[str, str], listener: str) -> dict[str, str]:
    """Return what is set for that listener alone, without the prefix."""
    prefix = f"{PREFIX}{listener.lower()}."
    return {name.removeprefix(prefix): text for name, text in values.items() if name.startswith(prefix)}


def without_listener(name: str) -> str:
    """Return Kafka's name of what is set for one listener, or for one mechanism of it; others as they are."""
    if not name.startswith(PREFIX):
        return name
    own = name.removeprefix(PREFIX).partition(".")[2]
    of_mechanism = own.partition(".")[2]
    return of_mechanism if of_mechanism in OF_MECHANISMS else own
