"""Quotas of clients, connections and replication, and the throttle times of clients that exceed them."""

from broker_sim.quota.client_quota_manager import Client, ClientQuotaManager
from broker_sim.quota.connection_quotas import ConnectionQuotas
from broker_sim.quota.controller_mutation import UNBOUNDED, ControllerMutationQuota, ControllerMutationQuotaManager
from broker_sim.quota.quota_managers import QuotaManagers
from broker_sim.quota.replication_quota_manager import ReplicationQuotaManager, ReplicationQuotas

__all__ = [
    "UNBOUNDED",
    "Client",
    "ClientQuotaManager",
    "ConnectionQuotas",
    "ControllerMutationQuota",
    "ControllerMutationQuotaManager",
    "QuotaManagers",
    "ReplicationQuotaManager",
    "ReplicationQuotas",
]
