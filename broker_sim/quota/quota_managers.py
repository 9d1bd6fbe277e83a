"""All client quotas of one node; mirrors `QuotaFactory.QuotaManagers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.quota.client_quota_manager import ClientQuotaManager
from broker_sim.quota.controller_mutation import ControllerMutationQuotaManager
from broker_sim.quota.rate import MS_PER_SECOND, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.quota_entity import QuotaEntity


class QuotaManagers:
    """One manager for each kind of client quota."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        sample_ms = config.quota_window_size_seconds * MS_PER_SECOND
        window = Window(config.quota_window_num, sample_ms)
        self.produce = ClientQuotaManager(window, clock)
        self.fetch = ClientQuotaManager(window, clock)
        self.request = ClientQuotaManager(window, clock, max_throttle_time_ms=sample_ms)
        self.controller_mutation = ControllerMutationQuotaManager(
            Window(config.controller_quota_window_num, config.controller_quota_window_size_seconds * MS_PER_SECOND),
            clock,
        )
        self.is_enabled = False
        """Whether any client quota is set, so that requests are measured."""
        self._quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Replace the quotas; does nothing if `quotas` is the same object as before."""
        if quotas is self._quotas:
            return
        self._quotas = quotas
        for manager, name in (
            (self.produce, "producer_byte_rate"),
            (self.fetch, "consumer_byte_rate"),
            (self.request, "request_percentage"),
            (self.controller_mutation, "controller_mutation_rate"),
        ):
            manager.update((entity, values[name]) for entity, values in quotas.items() if name in values)
        managers = (self.produce, self.fetch, self.request, self.controller_mutation)
        self.is_enabled = any(manager.is_enabled for manager in managers)
