"""The picture of a moment: what the page draws, in parts by name."""

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, VirtualTimer

from broker_sim.cluster.status import picture as module
from broker_sim.cluster.status.picture import WheelBucket, picture, purgatory_part
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.handlers.request_log import LOOK_LASTS_MS, RequestTally
from tests.broker_sim.waiting import Waiting

CONFIGS = {"replica.fetch.wait.max.ms": "20000"}


@pytest.fixture
def cluster():
    with VirtualCluster(3, topics=["orders:2:3"], configs=CONFIGS) as cluster:
        cluster.advance(1_000)
        yield cluster


def parked(parts):
    return [one for name, part in parts.items() if name.startswith("purgatory/") for one in part["parked"]]


def test_parked_operation_has_deadline_keys_reason_and_bucket(cluster):
    seen = cluster.picture()
    followers = [one for one in parked(seen.parts) if one["keys"] == ["orders-0"]]
    assert {one["client_id"] for one in followers} <= {"replica-1", "replica-2", "replica-3"}
    assert len(followers) == 2
    for one in followers:
        assert one["due_ms"] - one["since_ms"] == 20_000
        assert one["since_ms"] <= seen.at_ms < one["due_ms"]
        assert one["waits_for"] == "records"


def test_levels_of_the_wheel_have_time_and_counts_of_buckets(cluster):
    seen = cluster.picture().parts
    for part in (part for name, part in seen.items() if name.endswith("/Fetch")):
        assert sum(count for level in part["wheel"] for count in level["buckets"].values()) == part["num_delayed"]
        assert [level["tick_ms"] for level in part["wheel"]] == [20**n for n in range(len(part["wheel"]))]
        for one in part["parked"]:
            level = part["wheel"][one["level"] - 1]
            assert one["due_ms"] // level["tick_ms"] % level["size"] == one["bucket"]


def test_parts_stay_equal_while_nothing_happens(cluster):
    before = cluster.picture()
    cluster.advance(5)
    after = cluster.picture()
    assert after.at_ms == before.at_ms + 5
    assert after.parts == before.parts


def test_reading_does_not_change_the_run():
    digests = []
    for looks in (0, 20):
        with VirtualCluster(3, topics=["orders:2:3"], seed=3) as cluster:
            for _ in range(20):
                cluster.produce("orders", "x")
                cluster.advance(100)
                if looks:
                    cluster.picture()
            digests.append(repr(cluster.purgatory()))
    assert digests[0] == digests[1]


def test_only_the_nearest_deadlines_are_shown_and_all_are_counted(cluster, monkeypatch):
    name = f"purgatory/{cluster.leader('orders')}/Fetch"
    everything = cluster.picture().parts[name]
    monkeypatch.setattr(module, "MAX_PARKED", 1)
    monkeypatch.setattr(module, "MIN_PARKED", 1)
    cut = cluster.picture().parts[name]
    assert cut["parked"] == everything["parked"][:1]
    assert cut["num_delayed"] == everything["num_delayed"] > 1
    assert cut["wheel"] == everything["wheel"]


@pytest.fixture
def purgatory():
    """A purgatory in which 300 operations wait, of which the later half was parked first."""
    purgatory = DelayedOperationPurgatory("Fetch", VirtualTimer())
    for delay_ms in (*range(40_000, 55_000, 100), *range(10, 3_010, 20)):
        purgatory.try_complete_else_watch(Waiting(delay_ms), [f"orders-{delay_ms}"])
    return purgatory


def part_of(purgatory, *, most, bucket=None):
    return purgatory_part(1, purgatory, lambda _, keys: f"{len(keys)} key", most, bucket)


def delays(operations):
    return [one["due_ms"] for one in operations]


@pytest.mark.parametrize("most", [1, 20, 149, 150, 151, 299, 300, 400])
def test_those_that_are_shown_have_the_nearest_deadlines_of_all_levels(purgatory, most):
    part = part_of(purgatory, most=most)
    assert delays(part["parked"]) == sorted(one.delay_ms for one in purgatory.parked())[:most]
    assert [one["keys"] for one in part["parked"]] == [[f"orders-{due_ms}"] for due_ms in delays(part["parked"])]
    assert sum(count for level in part["wheel"] for count in level["buckets"].values()) == 300


def test_operation_that_was_postponed_is_where_its_deadline_is_now(purgatory):
    first = min(purgatory.timer.placements(), key=lambda each: each.task.expiration_ms).task
    purgatory.timer.postpone(first, 50_001)
    assert delays(part_of(purgatory, most=2)["parked"]) == [30, 50]


def test_operations_of_one_bucket_are_shown_too(purgatory):
    part = part_of(purgatory, most=30)
    coarsest = part["wheel"][-1]
    index, count = next(iter(coarsest["buckets"].items()))
    bucket = WheelBucket(coarsest["level"], int(index))
    shown = part_of(purgatory, most=100, bucket=bucket)["in_bucket"]
    assert {(one["level"], one["bucket"]) for one in shown} == {bucket}
    assert len(shown) == min(count, 100)
    assert "in_bucket" not in part


def test_purgatories_share_the_number_of_operations_that_are_shown(cluster, monkeypatch):
    def busy():
        parts = [part for name, part in cluster.picture().parts.items() if name.startswith("purgatory/")]
        return [part for part in parts if part["num_delayed"]]

    monkeypatch.setattr(module, "MIN_PARKED", 0)
    monkeypatch.setattr(module, "MAX_PARKED", len(busy()))
    assert [len(part["parked"]) for part in busy()] == [1] * len(busy())
    assert max(part["num_delayed"] for part in busy()) > 1


def test_search_shows_partitions_with_it_in_their_names(cluster):
    shown = [name for name in cluster.picture("ers-1").parts if name.startswith("partition/")]
    assert shown == ["partition/orders/1"]


def test_partitions_without_all_replicas_come_first(cluster, monkeypatch):
    cluster.create_topic("single", 1, 1, assignments=None)
    cluster.create_topic("late", assignments={0: [1, 2]})
    cluster.kill(2)
    cluster.wait_for_isr("late", lacks=2)
    monkeypatch.setattr(module, "MAX_PARTITIONS", 3)
    parts = cluster.picture().parts
    shown = [part for name, part in parts.items() if name.startswith("partition/")]
    assert all(len(part["isr"]) < len(part["assignment"]) for part in shown)
    assert parts["cluster"]["partitions_unwell"] == 3


def test_requests_and_errors_are_counted_until_the_last_viewer_leaves():
    tally = RequestTally()
    assert tally.look(0) == []
    tally.add("Fetch", "app", 5, None)
    tally.add("Fetch", "app", 7, None)
    assert tally.look(1000) == [{"api": "Fetch", "client_id": "app", "count": 2, "elapsed_ms": 12, "errors": {}}]
    assert not tally.is_over(1000 + LOOK_LASTS_MS)
    assert tally.is_over(1001 + LOOK_LASTS_MS)


def test_nothing_is_counted_before_the_first_viewer(cluster):
    assert not cluster.nodes.requests.is_on
    picture(cluster.nodes, counts_requests=False)
    assert not cluster.nodes.requests.is_on
    picture(cluster.nodes)
    assert cluster.nodes.requests.is_on
