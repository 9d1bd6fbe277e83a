"""The verbs of a cluster: the only list of operations on it.

`AsyncCluster` implements them; `Cluster`, `VirtualCluster`, the control port and `broker-sim ctl` are generated from
this list. A new verb is one method here and its tests: its parameters and docstring are all that the others need.
`broker-sim ctl` imports this package for its help, so slow imports are local to the methods.

Every method runs on the cluster's event loop. Errors: UnknownBrokerError and UnknownPartitionError
for unknown ids, WrongStateError for a verb that the state of the broker does not allow, ApiError for requests that a
Kafka controller would refuse, ClusterTimeoutError for a wait that takes too long.
"""

from broker_sim.cluster.verbs.base import WAIT_LIMIT_S
from broker_sim.cluster.verbs.brokers import BrokerVerbs
from broker_sim.cluster.verbs.requests import RequestVerbs
from broker_sim.cluster.verbs.scopes import ScopeVerbs
from broker_sim.cluster.verbs.security import SecurityVerbs
from broker_sim.cluster.verbs.status import StatusVerbs, WaitVerbs
from broker_sim.cluster.verbs.topics import GroupVerbs, TopicVerbs

__all__ = ["WAIT_LIMIT_S", "Verbs"]


class Verbs(ScopeVerbs, WaitVerbs, StatusVerbs, SecurityVerbs, TopicVerbs, GroupVerbs, RequestVerbs, BrokerVerbs):
    """All verbs of a running cluster."""
