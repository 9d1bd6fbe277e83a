"""Authentication and authorization of clients."""

from broker_sim.metadata.kafka_principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from broker_sim.security.authorizer import Authorizer, Decision, make_authorizer, parse_super_users
from broker_sim.security.certificates import Certificates, KeyPair
from broker_sim.security.delegation_tokens import DelegationTokenCache
from broker_sim.security.oauthbearer import OAUTHBEARER
from broker_sim.security.sasl_authenticator import LoginFailedError, SaslServerAuthenticator
from broker_sim.security.token_issuer import EXPIRES_S, KeySet, TokenIssuer

__all__ = [
    "ANONYMOUS",
    "EXPIRES_S",
    "OAUTHBEARER",
    "USER_TYPE",
    "Authorizer",
    "Certificates",
    "Decision",
    "DelegationTokenCache",
    "KafkaPrincipal",
    "KeyPair",
    "KeySet",
    "LoginFailedError",
    "SaslServerAuthenticator",
    "TokenIssuer",
    "make_authorizer",
    "parse_super_users",
]
