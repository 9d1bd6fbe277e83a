"""Members that are removed from their groups."""

import pytest

from broker_sim.cluster.faults.cluster_faults import ClusterFaults
from broker_sim.cluster.faults.socket_network import SocketNetwork
from broker_sim.errors import WrongStateError


def test_members_of_share_groups_stay(shares):
    shares.member("holder").join()
    kafka = shares.cluster.inside
    faults = ClusterFaults(kafka, SocketNetwork(kafka))
    with pytest.raises(WrongStateError, match="no group has members that can be removed"):
        faults.rebalance(None, "0")
    shares.cluster.advance(1_000)
    assert [member.id for member in shares.group.members] == ["holder"]
