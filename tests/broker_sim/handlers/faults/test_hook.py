"""Functions that decide on requests, against brokers in virtual time."""

import pytest

from broker_sim import ErrorCode, VirtualCluster
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.handlers.faults import Fault, Hook
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

KEY = ("orders", 0)


@pytest.fixture
def cluster():
    with VirtualCluster(1, topics=["orders:2:1"]) as made:
        yield made


@pytest.fixture
def ask(cluster):
    client = cluster.client("shop")

    def ask(request, version=PRODUCE_VERSION):
        pending = client.send(1, request, version)
        cluster.run_until(lambda: pending.done)
        return pending

    return ask


def error_of(pending):
    return pending.response.responses[0].partition_responses[0].error_code


def fail_by_hook(cluster):
    return cluster.hook("Produce", lambda request: request.fail("NOT_ENOUGH_REPLICAS"))


def fail_by_fault(cluster):
    return cluster.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS"))


@pytest.mark.parametrize("begin", [fail_by_hook, fail_by_fault])
def test_handle_ends_with_its_block(cluster, ask, begin):
    with begin(cluster) as handle:
        assert error_of(ask(produce_request(KEY))) == ErrorCode.NOT_ENOUGH_REPLICAS
        assert handle.hits == 1
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NONE


def test_function_sees_each_request_of_its_api_which_is_handled_as_always(cluster, ask):
    seen = []
    hook = cluster.hook("Produce", seen.append)
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NONE
    ask(fetch_request(KEY, max_wait_ms=1), FETCH_VERSION)
    (request,) = seen
    assert (request.api, request.api_version) == (ApiKey.PRODUCE, PRODUCE_VERSION)
    assert (request.client_id, request.broker) == ("shop", 1)
    assert request.message.topic_data[0].name == "orders"
    assert len(cluster.records("orders")) == 1
    assert (hook.hits, hook.remaining) == (1, None)
    hook.remove()
    ask(produce_request(KEY))
    assert len(seen) == 1


def test_function_may_fail_some_requests_only(cluster, ask):
    turns = iter([True, False])

    def every_other(request):
        if next(turns):
            request.fail("NOT_ENOUGH_REPLICAS")

    cluster.hook("Produce", every_other)
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.records("orders") == ()
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NONE


def test_hook_may_delay_the_brokers_response(cluster, ask):
    cluster.hook("Produce", lambda request: request.delay(70))
    assert ask(produce_request(KEY)).elapsed_ms == 70


def test_function_may_answer_itself_at_once_or_late(cluster, ask):
    response = messages.DescribeClusterResponse(cluster_id="mine")

    def answer(request):
        request.answer(response)
        request.delay(5)

    cluster.hook("DescribeCluster", answer)
    pending = ask(messages.DescribeClusterRequest(), 0)
    assert (pending.response.cluster_id, pending.elapsed_ms) == ("mine", 5)


@pytest.mark.parametrize(("lose", "written"), [("request", 0), ("response", 1)])
def test_function_may_break_the_connection(cluster, ask, lose, written):
    cluster.hook("Produce", lambda request: request.lose(lose), count=1)
    assert ask(produce_request(KEY)).disconnected
    assert len(cluster.records("orders")) == written
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NONE


def test_hook_ends_after_its_count_and_is_shown_until_then(cluster, ask):
    def count_me(_):
        pass

    hook = cluster.hook("Produce", count_me, broker=1, count=2)
    (shown,) = cluster.status().faults
    assert (shown.api, shown.broker, shown.count) == ("PRODUCE", 1, 2)
    assert shown.hook.endswith("count_me")
    for _ in range(3):
        ask(produce_request(KEY))
    assert (hook.hits, hook.remaining, cluster.status().faults) == (2, 0, ())


def test_hook_of_another_broker_is_not_called(cluster, ask):
    cluster.nodes.faults.inject(Hook("Produce", pytest.fail, broker=2))
    ask(produce_request(KEY))


def test_faults_hit_requests_that_a_hook_passes(cluster, ask):
    cluster.inject(Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER"))
    cluster.hook("Produce", lambda _: None)
    assert error_of(ask(produce_request(KEY))) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_hook_function_may_end_its_own_hook(cluster, ask):
    hooks = []
    hooks.append(cluster.hook("Produce", lambda _: hooks[0].remove()))
    ask(produce_request(KEY))
    assert cluster.status().faults == ()


def test_error_of_a_function_ends_a_virtual_run(cluster):
    def break_off(_):
        raise ZeroDivisionError("in the hook")

    cluster.hook("Produce", break_off)
    pending = cluster.client().send(1, produce_request(KEY), PRODUCE_VERSION)
    with pytest.raises(AssertionError, match="in the hook"):
        cluster.run_until(lambda: pending.done)


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (("Produce", None), TypeError, "calls a function, not None"),
        (("Frobnicate", print), ValueError, "unknown API 'Frobnicate'"),
    ],
)
def test_impossible_hook_is_refused(cluster, arguments, error, reason):
    with pytest.raises(error, match=reason):
        cluster.hook(*arguments)


def test_two_hooks_with_the_same_function_are_two():
    assert Hook("Produce", print) != Hook("Produce", print)
    assert repr(Hook("Produce", print)) == "Hook('Produce', print)"


def test_txn_offset_commit_and_add_partitions_return_the_injected_error(user):
    cluster = user.cluster
    cluster.inject(Fault(api="TxnOffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS"))
    cluster.inject(Fault(api="AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS"))
    commit = messages.TxnOffsetCommitRequest
    offsets = [commit.TxnOffsetCommitRequestPartition(0, 5)]
    request = commit("tx", "g", 1, 0, topics=[commit.TxnOffsetCommitRequestTopic("t", partitions=offsets)])
    answer = user.ask(request, 3, user.leader("g"))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    add = messages.AddPartitionsToTxnRequest
    topics = [add.AddPartitionsToTxnTopic("t", [0])]
    answer = user.ask(add(v3_and_below_topics=topics), 3, 1)
    (topic,) = answer.results_by_topic_v3_and_below
    (partition,) = topic.results_by_partition
    assert partition.partition_error_code == ErrorCode.CONCURRENT_TRANSACTIONS
