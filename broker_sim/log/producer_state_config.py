"""The broker's configurations of producers; mirrors `ProducerStateManagerConfig`."""

from __future__ import annotations

DEFAULT_PRODUCER_ID_EXPIRATION_MS = 86_400_000


class ProducerStateManagerConfig:
    """Shared by all logs of a broker, and changed in place when a dynamic configuration changes."""

    __slots__ = ("producer_id_expiration_ms", "transaction_verification_enabled")

    def __init__(
        self,
        producer_id_expiration_ms: int = DEFAULT_PRODUCER_ID_EXPIRATION_MS,
        transaction_verification_enabled: bool = True,
    ) -> None:
        self.producer_id_expiration_ms = producer_id_expiration_ms
        """A producer without a batch for this time is forgotten."""
        self.transaction_verification_enabled = transaction_verification_enabled
        """Whether the coordinator is asked before a partition joins a transaction (KIP-890)."""
