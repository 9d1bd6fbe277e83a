"""Who a client is, and what it may do."""

from broker_sim.security.kafka_principal import ANONYMOUS, KafkaPrincipal

__all__ = ["ANONYMOUS", "KafkaPrincipal"]
