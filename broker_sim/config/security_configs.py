"""Configurations of logins; mirrors `BrokerSecurityConfigs` and `SocketServerConfigs`, with Kafka's defaults."""

from dataclasses import dataclass

from broker_sim.config.definition import INT, LIST, UpdateMode, at_least, declare


@dataclass(frozen=True, kw_only=True)
class SecurityConfigs:
    """How clients log in; each may be set for one listener alone, see `BrokerConfig.for_listener`."""

    sasl_enabled_mechanisms: tuple[str, ...] = declare(
        LIST,
        ("GSSAPI",),
        "By which mechanisms clients may log in; the default is not served.",
        update_mode=UpdateMode.PER_BROKER,
    )
    sasl_server_max_receive_size: int = declare(
        INT, 524_288, "Largest request in bytes of a client that has not logged in."
    )
    connection_failed_authentication_delay_ms: int = declare(
        INT,
        100,
        "How long the answer to a failed login, and the close of its connection, are delayed.",
        at_least(0),
    )
