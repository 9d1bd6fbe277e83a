"""The identity of a client; mirrors `org.apache.kafka.common.security.auth.KafkaPrincipal`."""

from __future__ import annotations

from typing import Final, NamedTuple

from broker_sim.errors import ConfigError

USER_TYPE: Final = "User"


class KafkaPrincipal(NamedTuple):
    """A type, which is "User" unless a broker is extended, and a name; its text is `User:billing`."""

    principal_type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """Return the principal of a text as `User:billing`. Raises ConfigError."""
        principal_type, colon, name = text.partition(":")
        if not colon or not principal_type:
            raise ConfigError(f"expected a string in format principalType:principalName but got {text}")
        return cls(principal_type, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal(USER_TYPE, "ANONYMOUS")
"""A client that has not logged in: every client of a PLAINTEXT listener."""
