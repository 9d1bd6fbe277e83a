"""What `security` and `users` of a cluster mean: the configurations that Kafka has for it.

security="sasl_plaintext"   all listeners ask for a login, by every mechanism with a password
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.config import INTER_BROKER_LISTENER, LISTENERS, PLAINTEXT, SASL_PROTOCOLS, SECURITY_PROTOCOLS
from broker_sim.controller import ScramUpsertion
from broker_sim.errors import ConfigError
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.runtime.arguments import can_be_sent
from broker_sim.security import PASSWORD_MECHANISMS
from broker_sim.security.delegation_tokens import SALT_BYTES

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable

    from broker_sim.cluster.listeners.broker_listeners import BrokerListeners
    from broker_sim.config import GivenValue
    from broker_sim.metadata import ScramCredential, ScramMechanism

PROTOCOLS: Final = {protocol.lower(): protocol for protocol in SECURITY_PROTOCOLS}
MECHANISMS: Final = "sasl.enabled.mechanisms"


class Security(NamedTuple):
    """How clients connect; the passwords are not in its text."""

    protocol: str
    """That of the listeners, where no configuration says another one."""
    users: Mapping[str, str] | None
    """Passwords by name; None where the configurations have them, or there are no logins."""

    def __repr__(self) -> str:
        return f"Security({self.protocol}, users={list(self.users or ())})"

    def with_configs(self, configs: Mapping[str, GivenValue] | None) -> Mapping[str, GivenValue] | None:
        """Return the configurations with those that it means; what is given wins."""
        given = configs or {}
        meant: dict[str, GivenValue] = {}
        if self.protocol in SASL_PROTOCOLS:
            meant[MECHANISMS] = ",".join(PASSWORD_MECHANISMS)
        if self.protocol != PLAINTEXT and LISTENERS not in given:
            meant[INTER_BROKER_LISTENER] = self.protocol
        return {**meant, **given} if meant else configs


def read_security(security: object, users: object) -> Security:
    """Return what the arguments say. Raises ConfigError, which shows no password."""
    if security is not None and security not in PROTOCOLS:
        raise ConfigError(f"security must be one of {', '.join(PROTOCOLS)}, not {security!r}")
    if users is None:
        checked = None
    elif isinstance(users, Mapping):
        for user, password in users.items():
            check_user(user, password)
        checked = dict(users)
    else:
        raise ConfigError("users must be a mapping such as {'billing': 'secret'}")
    return Security(PROTOCOLS[str(security or "plaintext")], checked)


def check_user(user: object, password: object) -> None:
    """Raise ConfigError for what is no name or no password; it shows no password."""
    if not isinstance(user, str) or not user or "\0" in user or not can_be_sent(user):
        raise ConfigError(f"users: a name must be a text that is not empty, not {user!r}")
    if not isinstance(password, str) or not password or "\0" in password or not can_be_sent(password):
        raise ConfigError(f"users: the password of {user!r} must be a text that is not empty")


def credentials_of(
    security: Security, listeners: Iterable[BrokerListeners], rng: random.Random
) -> list[list[ScramUpsertion]]:
    """Return the SCRAM credentials of the users, apart for each mechanism that a listener enables."""
    enabled = {name for each in listeners for sasl in each.sasl.values() for name in sasl.mechanisms}
    found = []
    users = security.users or {}
    for mechanism in SCRAM_MECHANISMS.values():
        if users and mechanism.name in enabled:
            credentials = [_credential(mechanism, user, users[user], rng) for user in users]
            found.append(credentials)
    return found


def with_password(user: str, credentials: Mapping[int, ScramCredential], password: str) -> list[ScramUpsertion]:
    """Return the same credentials, which are by the codes of their mechanisms, with another password."""
    upsertions = []
    for code, each in credentials.items():
        salted = SCRAM_MECHANISMS[code].salted_password(password, each.salt, each.iterations)
        upsertions.append(ScramUpsertion(user, code, each.iterations, each.salt, salted))
    return upsertions


def _credential(mechanism: ScramMechanism, user: str, password: str, rng: random.Random) -> ScramUpsertion:
    salt, iterations = rng.randbytes(SALT_BYTES), mechanism.min_iterations
    salted = mechanism.salted_password(password, salt, iterations)
    return ScramUpsertion(user, mechanism.code, iterations, salt, salted)


def check_users(security: Security, listeners: Iterable[BrokerListeners]) -> None:
    """Raise ConfigError for users that could not log in anywhere."""
    if security.users is not None and not any(each.sasl for each in listeners):
        raise ConfigError("users log in nowhere: give security='sasl_plaintext' or 'sasl_ssl' too")
