"""Faults that hold requests, damage records or only count, and that hit some requests only; in virtual time."""

import pytest

from broker_sim import ErrorCode, Fault, VirtualCluster
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.protocol import messages

KEY = ("orders", 0)
COMMIT_VERSION = 8


@pytest.fixture
def cluster():
    with VirtualCluster(1, topics=["orders"]) as made:
        yield made


@pytest.fixture
def send(cluster):
    clients = {}

    def send(request, version=PRODUCE_VERSION, client_id="shop"):
        client = clients.setdefault(client_id, cluster.client(client_id))
        return client.send(1, request, version)

    return send


@pytest.fixture
def ask(cluster, send):
    def ask(*arguments, **names):
        pending = send(*arguments, **names)
        cluster.run_until(lambda: pending.done)
        return pending

    return ask


def error_of(pending):
    return pending.response.responses[0].partition_responses[0].error_code


def written(cluster):
    return len(cluster.records("orders"))


def test_held_request_is_handled_when_it_is_released(cluster, send):
    fault = cluster.inject(Fault(api="Produce", hold=True, count=1))
    held = send(produce_request(KEY))
    cluster.run_until(lambda: fault.held)
    cluster.advance(60_000)
    assert (held.done, written(cluster), fault.hits, fault.remaining) == (False, 0, 1, 0)
    assert fault.release() == 1
    cluster.run_until(lambda: held.done)
    assert (error_of(held), written(cluster), fault.held) == (ErrorCode.NONE, 1, 0)
    assert cluster.status().faults == ()


def test_requests_behind_a_held_one_wait_and_other_clients_do_not(cluster, send, ask):
    fault = cluster.inject(Fault(api="Produce", hold=True, client_id="slow"))
    send(produce_request(KEY), client_id="slow")
    behind = send(messages.MetadataRequest(topics=None), 12, client_id="slow")
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NONE
    assert not behind.done
    fault.release()
    cluster.run_until(lambda: behind.done)
    assert written(cluster) == 2


def test_held_requests_are_released_one_by_one_in_their_order(cluster, send):
    fault = cluster.inject(Fault(api="Produce", hold=True))
    first, second = (send(produce_request(KEY, values=(value,)), client_id=f"{value}") for value in (b"1", b"2"))
    cluster.run_until(lambda: fault.held == 2)
    fault.release(1)
    cluster.run_until(lambda: first.done)
    assert (second.done, fault.held) == (False, 1)
    assert [record.value for record in cluster.records("orders")] == [b"1"]


@pytest.mark.parametrize("end", [lambda cluster, fault: fault.remove(), lambda cluster, _: cluster.heal()])
def test_end_of_the_fault_releases_what_it_holds(cluster, send, end):
    fault = cluster.inject(Fault(api="Produce", hold=True))
    held = send(produce_request(KEY))
    cluster.run_until(lambda: fault.held)
    end(cluster, fault)
    cluster.run_until(lambda: held.done)
    assert error_of(held) == ErrorCode.NONE


def test_request_that_a_dead_broker_held_is_lost(cluster, send):
    fault = cluster.inject(Fault(api="Produce", hold=True))
    send(produce_request(KEY))
    cluster.run_until(lambda: fault.held)
    cluster.kill(1)
    fault.release()
    cluster.start(1)
    cluster.advance(1_000)
    assert written(cluster) == 0


def test_held_request_is_shown(cluster, send):
    cluster.inject(Fault(api="Produce", hold=True, count=1))
    send(produce_request(KEY))
    cluster.run_until(lambda: cluster.status().faults[0].held)
    (shown,) = cluster.status().faults
    assert (shown.hold, shown.held, shown.count) == (True, 1, 0)


def test_commit_of_one_group_is_held_and_that_of_another_passes(cluster, send):
    commit = messages.OffsetCommitRequest

    def request(group):
        offset = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        return commit(group, -1, "", topics=[commit.OffsetCommitRequestTopic(name="orders", partitions=[offset])])

    fault = cluster.inject(Fault(api="OffsetCommit", hold=True, group="billing"))
    held = send(request("billing"), COMMIT_VERSION, client_id="billing-1")
    passed = send(request("shipping"), COMMIT_VERSION, client_id="shipping-1")
    cluster.run_until(lambda: passed.done and fault.held)
    assert not held.done


def test_fault_of_a_transactional_id_hits_only_its_requests(cluster, ask):
    fault = cluster.inject(Fault(api="InitProducerId", transactional_id="tx-1", error="NOT_COORDINATOR"))
    codes = [ask(messages.InitProducerIdRequest(name, 1_000), 4).response.error_code for name in (None, "tx-1")]
    assert (codes[1], fault.hits) == (ErrorCode.NOT_COORDINATOR, 1)


@pytest.mark.parametrize(("key_type", "hits"), [(0, 1), (1, 0)])
def test_fault_of_a_group_coordinator_spares_transaction_coordinators(cluster, ask, key_type, hits):
    fault = cluster.inject(Fault(api="FindCoordinator", group="g", only_counts=True))
    ask(messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)
    assert fault.hits == hits


def test_third_request_is_hit(cluster, ask):
    fault = cluster.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS", skip=2, count=1))
    codes = [error_of(ask(produce_request(KEY))) for _ in range(4)]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE]
    assert fault.hits == 1


def test_some_requests_are_hit_by_chance_and_the_same_ones_again():
    def hits():
        with VirtualCluster(1, topics=["orders"], seed=3) as cluster:
            client = cluster.client("shop")
            cluster.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS", probability=0.5))
            codes = []
            for _ in range(20):
                pending = client.send(1, produce_request(KEY), PRODUCE_VERSION)
                cluster.run_until(lambda pending=pending: pending.done)
                codes.append(error_of(pending))
        return [bool(code) for code in codes]

    first = hits()
    assert {True, False} == set(first)
    assert hits() == first


def test_fault_that_only_counts_leaves_requests_to_others(cluster, ask):
    counting = cluster.inject(Fault(api="Produce", only_counts=True))
    cluster.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS", count=1))
    codes = [error_of(ask(produce_request(KEY))) for _ in range(2)]
    assert (codes, counting.hits) == ([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE], 2)


def fetched(ask, **fields):
    response = ask(fetch_request(KEY, **fields), FETCH_VERSION).response
    return bytes(response.responses[0].partitions[0].records)


@pytest.mark.parametrize("damage", ["crc", "cut"])
def test_first_fetched_batch_is_damaged_once(cluster, ask, damage):
    for _ in range(2):
        ask(produce_request(KEY))
    whole = fetched(ask)
    fault = cluster.inject(Fault(api="Fetch", damage=damage, count=1))
    damaged = fetched(ask)
    batch = len(whole) // 2
    if damage == "crc":
        assert (damaged[: batch - 1], damaged[batch - 1] ^ 1, damaged[batch:]) == (
            whole[: batch - 1], whole[batch - 1], whole[batch:],
        )  # fmt: skip
    else:
        assert damaged == whole[: batch // 2]
    assert fault.hits == 1
    assert fetched(ask) == whole


def test_fetch_without_records_is_not_damaged_and_not_counted(cluster, ask):
    fault = cluster.inject(Fault(api="Fetch", damage="crc", count=1))
    assert fetched(ask, max_wait_ms=1) == b""
    assert fault.hits == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"api": "Produce", "hold": True, "error": "NOT_ENOUGH_REPLICAS"}, "cannot have hold or damage"),
        ({"api": "Produce", "hold": True, "lose": "request"}, "a fault with lose= cannot have"),
        ({"api": "Produce", "hold": 1}, "hold must be true or false, not 1"),
        ({"api": "Produce", "damage": "crc"}, "damage is possible for Fetch only, not for Produce"),
        ({"api": "Fetch", "damage": "half"}, "damage must be crc or cut, not 'half'"),
        ({"api": "Produce", "only_counts": True, "delay_ms": 1}, "with only_counts cannot have another effect"),
        ({"api": "Produce", "delay_ms": 1, "group": "g"}, "Produce requests have no group"),
        ({"api": "Heartbeat", "delay_ms": 1, "transactional_id": "t"}, "Heartbeat requests have no transactional_id"),
        ({"api": "Produce", "delay_ms": 1, "probability": 0}, "probability must be above 0 and at most 1, not 0"),
        ({"api": "Produce", "delay_ms": 1, "skip": -1}, "skip must be a number of at least 0"),
    ],
)
def test_impossible_fault_is_refused(fields, reason):
    with pytest.raises(ValueError, match=reason):
        Fault(**fields)
