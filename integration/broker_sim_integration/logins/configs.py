"""The listeners of the broker, real or simulated, on which the logins are played."""

from __future__ import annotations

from typing import Final

ADMIN: Final = "ADMIN"
"""The listener without logins."""
LISTENERS: Final = ("LOGIN", "SHORT", "SMALL")
"""LOGIN has the defaults, SHORT has short sessions, and SMALL accepts only small requests before the login."""
SESSION_MS: Final = 3_000
MAX_BYTES: Final = 200
DELAY_MS: Final = 1_000
"""Delay in ms of failed logins: long enough to distinguish delayed responses on any machine."""
USERS: Final = {"billing": "secret", "audit": "other"}

_PACKAGE = "org.apache.kafka.common.security"
_MODULES: Final = {
    "plain": f"{_PACKAGE}.plain.PlainLoginModule required "
    + " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    + ";",
    "scram-sha-256": f"{_PACKAGE}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_PACKAGE}.scram.ScramLoginModule required;",
    "oauthbearer": f'{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
}
CONFIGS: Final = {
    "sasl.enabled.mechanisms": ",".join(name.upper() for name in _MODULES),
    "connection.failed.authentication.delay.ms": str(DELAY_MS),
    "listener.name.short.connections.max.reauth.ms": str(SESSION_MS),
    "listener.name.small.sasl.server.max.receive.size": str(MAX_BYTES),
    **{
        f"listener.name.{listener.lower()}.{mechanism}.sasl.jaas.config": line
        for listener in LISTENERS
        for mechanism, line in _MODULES.items()
    },
}
