"""The objects that a cluster provides to every broker: other nodes, random numbers, purgatories, faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim.broker.broker import Broker
    from broker_sim.broker.late_metadata import MetadataDelay
    from broker_sim.controller import Controller
    from broker_sim.handlers import ApiTable
    from broker_sim.handlers.denial_log import DenialLog
    from broker_sim.handlers.faults import FaultInjector
    from broker_sim.handlers.request_log import RequestLog
    from broker_sim.handlers.telemetry.client_metrics import ClientMetricsLog
    from broker_sim.quota import ControllerMutationQuotaManager
    from broker_sim.runtime.links import Links
    from broker_sim.runtime.purgatories import PurgatoryFactory


class BrokerEnvironment(NamedTuple):
    """The objects that all brokers of a cluster share, also across restarts."""

    cluster_id: str
    links: Links
    controller: Controller
    """The active controller; brokers call it only through `links`."""
    peers: Mapping[int, Broker]
    """The brokers that are alive at this moment, by id; called only through `links`."""
    random: random.Random
    make_purgatory: PurgatoryFactory
    api_table: ApiTable
    faults: FaultInjector
    metadata_delay: MetadataDelay
    requests: RequestLog
    controller_quotas: ControllerMutationQuotaManager
    denials: DenialLog
    client_metrics: ClientMetricsLog
    on_change: Callable[[], object]
    """Called when a broker has applied new metadata, and when it begins to accept connections."""
