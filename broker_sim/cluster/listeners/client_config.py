"""The configuration with which a client connects and logs in, for each client library.

confluent      librdkafka's: confluent-kafka, kcat and others on top of it
aiokafka       keyword arguments of its classes
kafka-python   keyword arguments of its classes
java           properties of the Java client and tools built on it
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.config import PLAINTEXT
from broker_sim.errors import ConfigError
from broker_sim.security import EXPIRES_S, OAUTHBEARER
from broker_sim.security.plain import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.security import KeyPair
    from broker_sim.security.sasl_listener import SaslListener

CLIENT: Final = "client"
"""The name in a client's certificate if no user is named."""
_JAVA_MODULES: Final = "org.apache.kafka.common.security"


class Login(NamedTuple):
    """Mechanism, user and secret of a client's login; the repr has no secret."""

    mechanism: str
    user: str
    password: str
    """The password; for OAUTHBEARER the signed token, empty if tokens are not signed."""

    @property
    def token(self) -> str:
        """The signed token of OAUTHBEARER, empty for other mechanisms or unsigned tokens."""
        return self.password if self.mechanism == OAUTHBEARER else ""

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user})"


class Trust(NamedTuple):
    """The certificates that a client trusts, and its own."""

    certificates: str
    """Trusted certificates, as PEM."""
    own: KeyPair | None


def choose_login(sasl: SaslListener, user: str | None, mechanism: str | None) -> Login:
    """Return a login at a listener; defaults: PLAIN if it is enabled, and the only user.

    With OAUTHBEARER any user name is accepted, unless an external issuer signs the tokens.

    Raises ConfigError for an unknown user or mechanism, and for tokens of an external issuer.
    """
    mechanisms = sorted(sasl.mechanisms)
    chosen_mechanism = mechanism or (PLAIN if PLAIN in mechanisms else mechanisms[0])
    if chosen_mechanism not in mechanisms:
        raise ConfigError(
            f"mechanism {chosen_mechanism!r} is not enabled on this listener; enabled: {', '.join(mechanisms)}"
        )
    passwords = sasl.users.passwords
    if chosen_mechanism == OAUTHBEARER:
        name = user or (next(iter(passwords)) if len(passwords) == 1 else CLIENT)
        return Login(chosen_mechanism, name, _signed_token(sasl, name))
    if user is None and len(passwords) != 1:
        raise ConfigError(f"pass user= (users of the listener: {', '.join(passwords) or 'none'})")
    name = next(iter(passwords)) if user is None else user
    if name not in passwords:
        raise ConfigError(f"unknown user {name!r}; users: {', '.join(passwords) or 'none'}")
    return Login(chosen_mechanism, name, passwords[name])


def _signed_token(sasl: SaslListener, user: str) -> str:
    """Return a token of the cluster's own issuer, empty if tokens are not signed."""
    if sasl.own_token is not None:
        return sasl.own_token(user)
    if sasl.takes_signed_tokens:
        raise ConfigError("tokens are signed by the issuer of sasl.oauthbearer.jwks.endpoint.url, not by the cluster")
    return ""


def client_config(
    client: str, servers: str, protocol: str, login: Login | None = None, trust: Trust | None = None
) -> dict[str, Any]:
    """Return the configuration of one of `CLIENTS`. Raises ConfigError for an unknown client."""
    make = CLIENTS.get(client)
    if make is None:
        raise ConfigError(f"client must be one of {', '.join(CLIENTS)}, not {client!r}")
    return make(servers, protocol, login, trust)


def _librdkafka(servers: str, protocol: str, login: Login | None, trust: Trust | None) -> dict[str, Any]:
    config = _dotted(servers, protocol, login)
    if login is not None and login.token:
        token = login.token
        config["oauth_cb"] = lambda _: (token, EXPIRES_S)
    elif login is not None and login.mechanism == OAUTHBEARER:
        config["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        config["sasl.oauthbearer.config"] = f"principal={login.user}"
    elif login is not None:
        config["sasl.username"] = login.user
        config["sasl.password"] = login.password
    if trust is not None:
        config["ssl.ca.pem"] = trust.certificates
        if trust.own is not None:
            config["ssl.certificate.pem"] = trust.own.chain
            config["ssl.key.pem"] = trust.own.key
    return config


def _python(
    provider: Callable[[str], object], servers: str, protocol: str, login: Login | None, trust: Trust | None
) -> dict[str, Any]:
    config: dict[str, Any] = {"bootstrap_servers": servers}
    if protocol != PLAINTEXT:
        config["security_protocol"] = protocol
    if login is not None:
        config["sasl_mechanism"] = login.mechanism
        if login.mechanism == OAUTHBEARER:
            config["sasl_oauth_token_provider"] = provider(login.token or unsecured_token(login.user))
        else:
            config["sasl_plain_username"] = login.user
            config["sasl_plain_password"] = login.password
    if trust is not None:
        import ssl  # noqa: PLC0415 - only for TLS

        from broker_sim.security.ssl_stores import load_key_pair  # noqa: PLC0415 - the same

        context = ssl.create_default_context(cadata=trust.certificates)
        if trust.own is not None:
            load_key_pair(context, trust.own, None, "client")
        config["ssl_context"] = context
    return config


def _java(servers: str, protocol: str, login: Login | None, trust: Trust | None) -> dict[str, Any]:
    config = _dotted(servers, protocol, login)
    if login is not None and login.token:
        raise ConfigError("no configuration: the Java client reads signed tokens only from a file or a URL")
    if login is not None:
        config["sasl.jaas.config"] = _jaas_line(login)
    if trust is not None:
        config["ssl.truststore.type"] = "PEM"
        config["ssl.truststore.certificates"] = trust.certificates
        if trust.own is not None:
            config["ssl.keystore.type"] = "PEM"
            config["ssl.keystore.certificate.chain"] = trust.own.chain
            config["ssl.keystore.key"] = trust.own.key
    return config


def _jaas_line(login: Login) -> str:
    if login.mechanism == OAUTHBEARER:
        claim = f"unsecuredLoginStringClaim_sub={_quoted(login.user)}"
        return f"{_JAVA_MODULES}.oauthbearer.OAuthBearerLoginModule required {claim};"
    kind = "plain.Plain" if login.mechanism == PLAIN else "scram.Scram"
    return (
        f"{_JAVA_MODULES}.{kind}LoginModule required username={_quoted(login.user)} password={_quoted(login.password)};"
    )


def unsecured_token(user: str) -> str:
    """Return an unsigned token for that user, valid until 2100."""
    parts = ({"alg": "none"}, {"sub": user, "exp": EXPIRES_S})
    texts = (urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts)
    return f"{'.'.join(texts)}."


def _aiokafka_provider(token: str) -> object:
    class Provider(import_module("aiokafka.abc").AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return token

    return Provider()


def _kafka_python_provider(token: str) -> object:
    try:
        module = import_module("kafka.net.sasl.oauth")
    except ModuleNotFoundError:  # before kafka-python 3
        module = import_module("kafka.sasl.oauth")

    class Provider(module.AbstractTokenProvider):  # type: ignore[misc, name-defined]
        def token(self) -> str:
            return token

    return Provider()


def _dotted(servers: str, protocol: str, login: Login | None) -> dict[str, Any]:
    """Return the entries with the same names in librdkafka and Java."""
    config: dict[str, Any] = {"bootstrap.servers": servers}
    if protocol != PLAINTEXT:
        config["security.protocol"] = protocol
    if login is not None:
        config["sasl.mechanism"] = login.mechanism
    return config


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


CLIENTS: Final[Mapping[str, Callable[[str, str, Login | None, Trust | None], dict[str, Any]]]] = {
    "confluent": _librdkafka,
    "aiokafka": partial(_python, _aiokafka_provider),
    "kafka-python": partial(_python, _kafka_python_provider),
    "java": _java,
}
