"""Share groups in the status of a cluster."""

import pytest

from broker_sim import InFlightStatus, SharePartitionStatus
from broker_sim.cluster.status.coordinator_status import GroupOffsetStatus
from broker_sim.errors import ClusterTimeoutError
from broker_sim.metadata.topic_partition import TopicPartition
from tests.broker_sim.share.named_values import acquired

ACCEPT, RELEASE, REJECT = 1, 2, 3
LOCK_MS = 30_000


@pytest.fixture
def holder(shares):
    """A member that has the first two of five records of partition 0."""
    for _ in range(5):
        shares.cluster.produce("orders", "an order", partition=0)
    member = shares.member("holder").join()
    assert member.fetch(max_records=2) == [acquired(0, 1)]
    return member


def test_group_has_its_members_and_how_far_it_has_come(shares, holder):
    group = shares.group
    assert (group.type, group.state, group.assignor) == ("share", "Stable", "simple")
    (member,) = group.members
    assert (member.id, member.instance_id, member.client_id) == ("holder", None, holder.client.host)
    assert member.assignment == (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assert group.offsets == (
        GroupOffsetStatus("orders", 0, 0, high_watermark=5, lag=5),
        GroupOffsetStatus("orders", 1, None, high_watermark=0, lag=0),
    )
    assert (group.lag, group.committed("orders")) == (5, 0)
    assert shares.cluster.status().group("billing") == group
    assert [each["share_partitions"] for each in shares.cluster.groups().to_json()["groups"]] == [
        [
            {
                "topic": "orders",
                "partition": 0,
                "start_offset": 0,
                "high_watermark": 5,
                "lag": 5,
                "in_flight": [
                    {
                        "first_offset": 0,
                        "last_offset": 1,
                        "state": "Acquired",
                        "delivery_count": 1,
                        "member": "holder",
                        "lock_left_ms": LOCK_MS,
                    }
                ],
            },
            {"topic": "orders", "partition": 1, "start_offset": None, "high_watermark": 0, "lag": 0, "in_flight": []},
        ]
    ]


def test_records_in_flight_are_counted_by_state(shares, holder):
    assert holder.fetch(max_records=2) == [acquired(2, 3)]
    holder.acknowledge(1, 1, ACCEPT)
    holder.acknowledge(2, 2, REJECT)
    holder.acknowledge(3, 3, RELEASE)
    shares.cluster.advance(1_000)
    partition = shares.group.share_partition("orders")
    left_ms = LOCK_MS - 1_000
    assert partition.in_flight == (
        InFlightStatus(0, 0, "Acquired", 1, "holder", left_ms),
        InFlightStatus(1, 1, "Acknowledged", 1, None, None),
        InFlightStatus(2, 2, "Archived", 1, None, None),
        InFlightStatus(3, 3, "Available", 1, None, None),
    )
    assert (partition.start_offset, partition.high_watermark, partition.lag) == (0, 5, 3)
    assert partition.count("Acquired") == 1
    assert partition.at(2).state == "Archived"
    assert partition.at(4) is None


def test_lock_that_is_over_is_seen(shares, holder):
    shares.cluster.advance(LOCK_MS)
    (records,) = shares.group.share_partition("orders").in_flight
    assert records == InFlightStatus(0, 1, "Available", 1, None, None)
    assert records.count == 2
    assert holder.fetch(max_records=2) == [acquired(0, 1, deliveries=2)]
    (records,) = shares.group.share_partition("orders").in_flight
    assert (records.state, records.delivery_count) == ("Acquired", 2)


def test_what_is_done_is_in_flight_no_more(shares, holder):
    holder.acknowledge(0, 1, ACCEPT)
    partition = shares.group.share_partition("orders")
    assert partition == SharePartitionStatus("orders", 0, 2, high_watermark=5, lag=3, in_flight=())


def test_partly_finished_batch_is_shown_from_the_start_offset_on(shares, holder):
    assert holder.fetch() == [acquired(2, 4)]
    holder.acknowledge(0, 2, ACCEPT)
    partition = shares.group.share_partition("orders")
    assert (partition.start_offset, partition.lag) == (3, 2)
    assert partition.in_flight == (InFlightStatus(3, 4, "Acquired", 1, "holder", LOCK_MS),)


def test_group_without_connections_is_as_the_share_coordinator_has_it(shares, holder):
    holder.acknowledge(1, 1, ACCEPT)
    holder.client.disconnect(1)
    shares.cluster.run_until(lambda: not shares.cluster.nodes.brokers[1].share_partitions.partitions)
    partition = shares.group.share_partition("orders")
    assert (partition.start_offset, partition.lag) == (0, 4)
    assert partition.in_flight == (
        InFlightStatus(0, 0, "Available", 1, None, None),
        InFlightStatus(1, 1, "Acknowledged", 1, None, None),
    )


@pytest.mark.parametrize(("reset", "lag"), [("earliest", 3), ("latest", 0), ("by_duration:PT1H", None)])
def test_group_that_has_not_begun_has_the_lag_of_where_it_will(shares, reset, lag):
    shares.cluster.set_group_configs("billing", {"share.auto.offset.reset": reset})
    for _ in range(3):
        shares.cluster.produce("orders", "an order", partition=1)
    shares.member("reader").join()
    partition = shares.group.share_partition("orders", 1)
    assert (partition.start_offset, partition.high_watermark, partition.lag) == (None, 3, lag)


def test_wait_for_the_lag_ends_when_all_is_done(shares, holder):
    holder.fetch(max_records=3)
    holder.acknowledge(0, 2, ACCEPT)
    with pytest.raises(ClusterTimeoutError, match="it is Stable with 1 members and a lag of 2"):
        shares.cluster.wait_for_group("billing", lag=0, timeout_s=1)
    holder.acknowledge(3, 3, REJECT)
    holder.acknowledge(4, 4, ACCEPT)
    assert shares.cluster.wait_for_group("billing", lag=0).lag == 0


@pytest.mark.usefixtures("holder")
def test_share_partition_that_is_not_there_is_named(shares):
    with pytest.raises(LookupError, match="group billing has no share partition payments-0"):
        shares.group.share_partition("payments")
