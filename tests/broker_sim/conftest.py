"""A cluster in this process with its control port, and a client of one broker without a network.

For groups: a cluster in virtual time, and a client that speaks to the coordinator of a group.
"""

import os
import time

import pytest

from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from tests.broker_sim.frame_client import FrameClient
from tests.broker_sim.group_user import PARTITIONS, GroupUser
from tests.broker_sim.share_members import Shares

TIMEOUT_S = 60
CONFIGS = {
    # Followers' fetches stay parked: with Kafka's 500 ms none is, whenever they are sent again.
    "replica.fetch.wait.max.ms": "20000"
}
SMALL = {"offsets.topic.num.partitions": str(PARTITIONS)}
SHORT_SESSIONS = {"broker.session.timeout.ms": "600", "broker.heartbeat.interval.ms": "200"}


@pytest.fixture(scope="session", autouse=True)
def synced():
    """The inodes of the files that were brought to the disk, the newest last.

    They are noted instead: no power fails in a test but that of a simulated disk, and each would take
    milliseconds.
    """
    inodes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: inodes.append(os.fstat(descriptor).st_ino))
        yield inodes


@pytest.fixture
def short_sessions():
    """Let a killed broker come back soon: it does when its session has ended.

    Other tests keep Kafka's 9 s: a loaded machine may hold all brokers back for 600 ms.
    """


@pytest.fixture
def cluster(request):
    sessions = SHORT_SESSIONS if "short_sessions" in request.fixturenames else {}
    with Cluster(3, configs=CONFIGS | sessions, control=True) as made:
        yield made


@pytest.fixture
def control_url(cluster):
    return cluster.control_url


@pytest.fixture
def parked_fetch(cluster):
    """Wait until followers' fetches are parked; returns the key that they are watched under."""
    cluster.create_topic("orders", 1, 3)
    deadline = time.monotonic() + TIMEOUT_S
    while not any(purgatory.parked for purgatory in cluster.purgatory()):
        assert time.monotonic() < deadline
    return "orders-0"


@pytest.fixture
def make_frame_client():
    """Make a client of a broker without a network: `make_frame_client(broker.dispatcher.handle_frame)`."""
    return FrameClient


@pytest.fixture
def make_user():
    """Make a user of a new cluster, which has the topic t with two partitions."""
    clusters = []

    def make(brokers=3, offsets_topic=True, **configs):
        configs = {key.replace("_", "."): str(value) for key, value in configs.items()}
        cluster = VirtualCluster(brokers, topics=[f"t:2:{brokers}"], configs={**SMALL, **configs})
        clusters.append(cluster)
        cluster.wait_until_in_sync()
        user = GroupUser(cluster)
        if offsets_topic:
            user.create_offsets_topic()
        return user

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture
def user(make_user):
    """Return a user of three brokers."""
    return make_user()


@pytest.fixture
def shares():
    """A broker with the topic of a share group."""
    made = Shares()
    yield made
    made.cluster.close()
