"""The id of a cluster that its user has chosen."""

import pytest

from broker_sim import Cluster, ConfigError
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.protocol.messages import DescribeClusterRequest

CHOSEN = "MkU3OEVBNTcwNTJENDM2Qk"
"""As in many examples of Kafka in containers; as a UUID its last character would be another."""
NOT_A_UUID = r"my-cluster:=\1!"


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


@pytest.mark.parametrize("cluster_id", ["", "my cluster", "my-cluster\n", "é", 7])
def test_id_that_no_client_could_show_is_rejected(cluster_id):
    with pytest.raises(ConfigError, match="cluster_id must be printable ASCII without spaces"):
        VirtualCluster(1, cluster_id=cluster_id)


def test_any_text_is_found_again_in_the_data_directory(tmp_path):
    for _ in range(2):
        with Cluster(1, data_dir=tmp_path, cluster_id=NOT_A_UUID) as cluster:
            assert cluster.status().cluster_id == NOT_A_UUID
    (file,) = tmp_path.rglob("meta.properties")
    assert r"cluster.id=my-cluster\:\=\\1\!" in file.read_text("utf-8").splitlines()


def test_data_of_another_cluster_is_not_opened_under_the_chosen_id(tmp_path):
    with Cluster(1, data_dir=tmp_path, cluster_id=CHOSEN) as cluster:
        assert cluster.status().cluster_id == CHOSEN
    with Cluster(1, data_dir=tmp_path) as cluster:
        assert cluster.status().cluster_id == CHOSEN
    another = Cluster(1, data_dir=tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ")
    with pytest.raises(ConfigError, match=f"has the id {CHOSEN}: leave out cluster_id"), another:
        pass
