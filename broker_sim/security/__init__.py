"""Who a client is, how it shows it, and what it may do."""

from broker_sim.security.authorizer import Authorizer, Decision, parse_super_users
from broker_sim.security.kafka_principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from broker_sim.security.sasl_authenticator import LoginFailedError, SaslServerAuthenticator
from broker_sim.security.sasl_listener import SASL_MECHANISMS, SaslListener, sasl_listener

__all__ = [
    "ANONYMOUS",
    "SASL_MECHANISMS",
    "USER_TYPE",
    "Authorizer",
    "Decision",
    "KafkaPrincipal",
    "LoginFailedError",
    "SaslListener",
    "SaslServerAuthenticator",
    "parse_super_users",
    "sasl_listener",
]
