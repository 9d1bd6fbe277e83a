"""Who a client is, and what it may do."""

from broker_sim.security.authorizer import Authorizer, Decision, parse_super_users
from broker_sim.security.kafka_principal import ANONYMOUS, KafkaPrincipal

__all__ = ["ANONYMOUS", "Authorizer", "Decision", "KafkaPrincipal", "parse_super_users"]
