"""The SASL logins of a listener: the mechanisms that its configurations enable.

Mirrors `SaslChannelBuilder` and the part of `ChannelBuilders` that reads JAAS lines.

Deliberate differences: GSSAPI is not supported. SCRAM and OAUTHBEARER need no JAAS line, though one is
accepted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.config import JAAS_CONFIG, SERVER_HANDLER, SIGNED_TOKEN_HANDLERS, listener_values
from broker_sim.errors import ConfigError
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.security.jaas import LoginModule, parse_jaas
from broker_sim.security.oauthbearer import OAUTHBEARER, OAuthBearerSaslServer, UnsecuredTokens
from broker_sim.security.plain import PLAIN, PlainSaslServer, PlainUsers
from broker_sim.security.refreshed_keys import read_keys
from broker_sim.security.sasl_authenticator import SaslServerAuthenticator
from broker_sim.security.scram import ScramSaslServer
from broker_sim.security.signed_tokens import SignedTokens
from broker_sim.security.token_issuer import TokenIssuer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.runtime.process import Process
    from broker_sim.security.bearer_token import TokenValidator
    from broker_sim.security.sasl_authenticator import ErrorAnswer
    from broker_sim.security.sasl_server import SaslServer
    from broker_sim.security.scram import CredentialOf, TokenOf

_SCRAM_BY_NAME: Final = {each.name: each for each in SCRAM_MECHANISMS.values()}
PASSWORD_MECHANISMS: Final = (PLAIN, *_SCRAM_BY_NAME)
SASL_MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)
"""Supported SASL mechanisms."""
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER: Final = "user_"
_HANDLER: Final = f"{OAUTHBEARER.lower()}.{SERVER_HANDLER}"


class SaslListener(NamedTuple):
    """The fixed settings of a listener's logins."""

    mechanisms: tuple[str, ...]
    """Enabled mechanisms, in the order in which Kafka lists them."""
    users: PlainUsers
    tokens: TokenValidator
    session_ms: Mapping[str, int]
    """Lifetime of a login in ms, by mechanism; 0 or less means no limit."""
    max_receive_bytes: int
    failure_delay_ms: int
    own_token: Callable[[str], str] | None = None
    """Issues a signed token for a user, if the listener accepts tokens of the cluster's own issuer."""

    @property
    def takes_signed_tokens(self) -> bool:
        """Whether OAUTHBEARER tokens must be signed."""
        return isinstance(self.tokens, SignedTokens)

    def start(self, process: Process) -> None:
        """Keep the token keys up to date while the broker's process lives."""
        if isinstance(self.tokens, SignedTokens):
            self.tokens.keys.start(process)

    def make_authenticator(
        self,
        credential_of: CredentialOf,
        token_of: TokenOf,
        nonces: random.Random,
        error_answer: ErrorAnswer,
        wall_clock_ms: Callable[[], int],
        *,
        limited: bool = True,
    ) -> SaslServerAuthenticator:
        """Return the login of one connection; `limited` as for `decode`."""
        makers: dict[str, Callable[[], SaslServer]] = {}
        for name in self.mechanisms:
            if name == PLAIN:
                makers[name] = partial(PlainSaslServer, self.users)
            elif name == OAUTHBEARER:
                makers[name] = partial(OAuthBearerSaslServer, self.tokens, wall_clock_ms)
            else:
                scram = _SCRAM_BY_NAME[name]
                makers[name] = partial(ScramSaslServer, scram, credential_of, token_of, nonces)
        return SaslServerAuthenticator(makers, error_answer, self.session_ms, wall_clock_ms, limited=limited)


def _check_claims(config: BrokerConfig) -> None:
    """Raise ConfigError with the message of Kafka's `BrokerJwtValidator` if required claims are not verified."""
    if not (config.sasl_oauthbearer_expected_audience or config.sasl_oauthbearer_allow_unverified_audience):
        raise _unverified_claim("audience", "aud", "audience(s) that identify this cluster")
    if not (config.sasl_oauthbearer_expected_issuer or config.sasl_oauthbearer_allow_unverified_issuer):
        raise _unverified_claim("issuer", "iss", "issuer URL of the OAuth/OIDC provider that signs the tokens")


def _unverified_claim(name: str, claim: str, value: str) -> ConfigError:
    config = f"sasl.oauthbearer.expected.{name}"
    return ConfigError(
        f'The OAuth validator for the broker requires "{config}" to be configured so that the token\'s {name}'
        f' ("{claim}") claim can be verified, but it was not set. Set "{config}" to the {value}, or set'
        f' "sasl.oauthbearer.allow.unverified.{name}" to true to accept tokens regardless of their {name}.'
    )


def sasl_listener(
    config: BrokerConfig,
    listener: str,
    users: Mapping[str, str] | None,
    issuer: TokenIssuer | None = None,
    *,
    verifies_claims: bool = False,
) -> SaslListener:
    """Return the settings of the listener's logins; `users` replace those in its JAAS line.

    `issuer` signs the tokens if no keys are configured. `verifies_claims` requires an audience and an issuer if
    keys are configured, as Kafka does from 4.4 on. Raises ConfigError, MissingExtraError.
    """
    own_config = config.for_listener(listener)
    enabled = own_config.sasl_enabled_mechanisms
    for mechanism in enabled or ("none",):
        if mechanism not in SASL_MECHANISMS:
            raise ConfigError(
                f"listener {listener}: the SASL mechanism {mechanism} is not supported; set"
                f" sasl.enabled.mechanisms to some of {', '.join(SASL_MECHANISMS)}"
            )
    texts = listener_values(config.originals, listener)
    modules = {mechanism: _module(f"{mechanism.lower()}.{JAAS_CONFIG}", texts, listener) for mechanism in enabled}
    passwords = dict(users or {})
    if users is None and PLAIN in enabled:
        passwords = _users_of(modules[PLAIN], listener)
    signed, is_own = None, False
    if OAUTHBEARER in enabled and texts.get(_HANDLER) in SIGNED_TOKEN_HANDLERS:
        url = own_config.sasl_oauthbearer_jwks_endpoint_url
        issuer = issuer or TokenIssuer()
        is_own = not url
        if url and verifies_claims:
            _check_claims(own_config)
        signed = SignedTokens.from_config(own_config, read_keys(url, own_config) if url else issuer.keys)
    bearer = modules.get(OAUTHBEARER)
    return SaslListener(
        tuple(hash_order(enabled, string_hash)),
        PlainUsers(passwords),
        signed or UnsecuredTokens.from_options({} if bearer is None else bearer.options),
        {each: _session_ms(each, texts, own_config, listener) for each in enabled},
        own_config.sasl_server_max_receive_size,
        own_config.connection_failed_authentication_delay_ms,
        partial(issuer.token, config=own_config) if is_own and issuer is not None else None,
    )


def _session_ms(mechanism: str, texts: Mapping[str, str], own_config: BrokerConfig, listener: str) -> int:
    name = f"{mechanism.lower()}.connections.max.reauth.ms"
    text = texts.get(name)
    if text is None:
        return own_config.connections_max_reauth_ms
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"listener.name.{listener.lower()}.{name}={text} is not a number") from None


def _module(name: str, texts: Mapping[str, str], listener: str) -> LoginModule | None:
    text = texts.get(name)
    if text is None:
        return None
    try:
        return parse_jaas(text)
    except ConfigError as error:
        raise ConfigError(f"listener.name.{listener.lower()}.{name}: {error}") from None


def _users_of(module: LoginModule | None, listener: str) -> dict[str, str]:
    """Return the passwords of users by name."""
    if module is None:
        raise ConfigError(
            f"listener {listener} has no users for PLAIN: pass users={{'NAME': 'PASSWORD'}} to the cluster"
            f" (--user NAME=PASSWORD), or set listener.name.{listener.lower()}.plain.{JAAS_CONFIG}"
        )
    if module.name != _PLAIN_MODULE:
        return {}
    return {
        option.removeprefix(_USER): password for option, password in module.options.items() if option.startswith(_USER)
    }
