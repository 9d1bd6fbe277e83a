"""The id of a cluster that its user has chosen."""

import pytest

from broker_sim import Cluster, ConfigError
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.protocol.messages import DescribeClusterRequest

CHOSEN = "MkU3OEVBNTcwNTJENDM2Qg"


def test_clients_get_the_chosen_cluster_id():
    cluster = VirtualCluster(1, cluster_id=CHOSEN)
    pending = cluster.client().send(1, DescribeClusterRequest(), 0)
    cluster.run_until(lambda: pending.done)
    assert pending.response.cluster_id == CHOSEN


def topic_id(cluster):
    return cluster.nodes.controller.image.topics["t"].topic_id


def test_other_ids_of_a_seed_do_not_depend_on_the_choice():
    topic_ids = {topic_id(VirtualCluster(1, topics=["t:1:1"], cluster_id=chosen)) for chosen in (None, CHOSEN)}
    assert len(topic_ids) == 1


@pytest.mark.parametrize("cluster_id", ["", "my-cluster", CHOSEN + "=", CHOSEN[:-1], CHOSEN[:-1] + "B", 7])
def test_invalid_uuid_is_rejected(cluster_id):
    with pytest.raises(ConfigError, match="cluster_id must be a UUID as Kafka writes it"):
        VirtualCluster(1, cluster_id=cluster_id)


def test_data_of_another_cluster_is_not_opened_under_the_chosen_id(tmp_path):
    with Cluster(1, data_dir=tmp_path, cluster_id=CHOSEN) as cluster:
        assert cluster.status().cluster_id == CHOSEN
    with Cluster(1, data_dir=tmp_path) as cluster:
        assert cluster.status().cluster_id == CHOSEN
    another = Cluster(1, data_dir=tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ")
    with pytest.raises(ConfigError, match=f"has the id {CHOSEN}: leave out cluster_id"), another:
        pass
