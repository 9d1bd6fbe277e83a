"""The identity of a client; mirrors `org.apache.kafka.common.security.auth.KafkaPrincipal`."""

from __future__ import annotations

from typing import Final, NamedTuple

from broker_sim.errors import ConfigError

USER_TYPE: Final = "User"


class KafkaPrincipal(NamedTuple):
    """A principal type, "User" unless a broker is extended, and a name; its text is `User:billing`."""

    principal_type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> KafkaPrincipal:
        """Parse text such as `User:billing`. Raises ConfigError."""
        principal_type, colon, name = text.partition(":")
        if not colon or not principal_type:
            raise ConfigError(f"expected a string in format principalType:principalName but got {text}")
        return cls(principal_type, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal(USER_TYPE, "ANONYMOUS")
"""Principal of unauthenticated clients, such as all clients of a PLAINTEXT listener."""
