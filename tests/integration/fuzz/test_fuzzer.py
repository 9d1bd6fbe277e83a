"""The whole machinery in virtual time: two simulated clusters, one with a planted difference."""

import asyncio
import inspect
import json

import pytest
from broker_sim_integration.cluster_under_test.brokers import Brokers
from broker_sim_integration.fuzz.areas.all_areas import AREAS
from broker_sim_integration.fuzz.areas.area import CONFIGS
from broker_sim_integration.fuzz.fuzzer import Fuzzer
from broker_sim_integration.fuzz.report import as_scenario, read_sequence, write_finding
from broker_sim_integration.fuzz.sequence import Fault as BrokerFault
from broker_sim_integration.fuzz.sequence import Pause, Request, Sequence, TopicPlan
from broker_sim_integration.fuzz.side import FuzzedSide

from broker_sim import AsyncCluster, Fault
from broker_sim.runtime.virtual import run


def _side(name, cluster):
    async def verb(verb, broker):
        doing = getattr(cluster, verb)(broker)
        if inspect.isawaitable(doing):
            await doing

    addresses = {broker: cluster.address(broker) for broker in (1, 2, 3)}
    return FuzzedSide(name, Brokers.of(addresses, None), verb)


def _fuzz(work, *planted, configs=CONFIGS, slow_ms=0, with_share_groups=False):
    """Run `work(fuzzer)` on two clusters, of which the second has the planted faults and slow links."""

    async def main(_loop):
        async with AsyncCluster(3, configs=configs, seed=1) as one, AsyncCluster(3, configs=configs, seed=2) as other:
            fuzzer = Fuzzer(_side("kafka", one), _side("simulator", other))
            await fuzzer.warm_up(with_share_groups=with_share_groups)
            for fault in planted:
                other.inject(fault)
            if slow_ms:
                other.set_link(1, 2, delay_ms=slow_ms)
                other.set_link(2, 1, delay_ms=slow_ms)
            return await work(fuzzer)

    return run(main)


@pytest.mark.parametrize("area", ["groups", "transactions", "log", "topics", "streams_groups"])
def test_a_cluster_does_not_differ_from_its_like(area):
    async def work(fuzzer):
        drawn = (AREAS[area].draw(seed) for seed in range(2))
        return await asyncio.gather(*map(fuzzer.examine, drawn))

    for finding in _fuzz(work):
        assert finding.trouble is None
        assert finding.differences == []


@pytest.mark.parametrize("area", ["share_groups", "share_states"])
def test_a_cluster_does_not_differ_from_its_like_in_share_groups(area):
    async def work(fuzzer):
        drawn = (AREAS[area].draw(seed) for seed in range(4))
        return await asyncio.gather(*map(fuzzer.examine, drawn))

    for finding in _fuzz(work, with_share_groups=True):
        assert finding.trouble is None
        assert finding.once_different == []


@pytest.mark.parametrize("area", ["replication", "elections"])
def test_a_wave_with_faults_does_not_differ_from_its_like(area):
    async def work(fuzzer):
        return await fuzzer.examine_wave([AREAS[area].draw(seed) for seed in range(2)])

    for finding in _fuzz(work, configs=AREAS[area].configs):
        assert finding.trouble is None
        assert finding.differences == []


def _ask(api, version, **body):
    return Request("a", "first", api, version, body)


OFFSETS = [{"name": "<topic1>", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
RECORDS = [{"index": 0, "records": [{"values": ["x"]}]}]
PRODUCE = _ask("Produce", 9, acks=-1, timeout_ms=5000,
               topic_data=[{"name": "<topic1>", "partition_data": RECORDS}])  # fmt: skip
END = _ask("ListOffsets", 7, replica_id=-1, topics=OFFSETS)
CLUSTER = _ask("DescribeCluster", 0)
PLANTED = Sequence(
    "log",
    0,
    (TopicPlan("topic1"), TopicPlan("topic2")),
    (CLUSTER, Pause(5), END, PRODUCE, CLUSTER, CLUSTER, END, CLUSTER, Pause(3), CLUSTER),
)


def test_a_planted_difference_is_found_shrunk_and_printed_as_a_scenario_that_has_it(tmp_path):
    """The second cluster refuses every produce."""

    async def work(fuzzer):
        finding = await fuzzer.examine(PLANTED)
        scope = {"__name__": "printed"}
        exec(as_scenario(finding), scope)
        printed = scope["SEQUENCE_LOG_0"]
        return finding, printed, await fuzzer.examine(printed)

    lost = Fault(api="Produce", error="REQUEST_TIMED_OUT")
    finding, printed, again = _fuzz(work, lost)
    assert finding.shrunk.actions == (PRODUCE,)
    assert finding.shrunk.topics == (TopicPlan("topic1"),)
    (code, *_) = [one for one in finding.shrunk_differences if one.path.endswith("error_code")]
    assert (code.action, code.kafka, code.sim) == ("Produce 9", 0, 7)
    assert printed == finding.shrunk
    assert again.differences[0].kind == finding.differences[0].kind
    path = write_finding(finding, tmp_path)
    assert read_sequence(path) == printed
    assert json.loads(path.read_text())["by_chance"] is False


def test_shrunk_sequence_starts_no_broker_that_runs():
    faults = (BrokerFault("stop", "third"), BrokerFault("start", "third"))

    async def work(fuzzer):
        return await fuzzer.examine(PLANTED.with_actions((*faults, PRODUCE)))

    finding = _fuzz(work, Fault(api="Produce", error="REQUEST_TIMED_OUT"))
    assert finding.trouble is None
    assert finding.shrunk.actions == (PRODUCE,)


def test_records_that_the_leader_has_taken_alone_are_replicated_before_the_next_request():
    """The followers of the second cluster hear of them 30 ms later."""
    plan = TopicPlan("topic1", 1, ("first", "second"))
    produce = _ask("Produce", 9, **PRODUCE.body | {"acks": 1})

    async def work(fuzzer):
        return await fuzzer.examine(Sequence("replication", 0, (plan,), (Pause(2000), produce, Pause(10), END)))

    finding = _fuzz(work, slow_ms=30)
    assert finding.trouble is None
    assert finding.once_different == []


OF_NOBODY = {"group_id": "<group1>", "member_id": "nobody"}
MEMBERS_ASK = {
    "JoinGroup": {
        **OF_NOBODY, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer", "protocols": [],
    },
    "SyncGroup": {**OF_NOBODY, "generation_id": 1, "assignments": []},
}  # fmt: skip


@pytest.mark.parametrize("slow", [None, 450])
@pytest.mark.parametrize("api", MEMBERS_ASK)
def test_an_answer_of_a_slow_broker_is_not_taken_for_a_parked_one(api, slow):
    """Both have a patience of 400 ms; a broker that is slow is slow for other requests too."""
    asked = Request("a", "coordinator <group1>", api, 2, MEMBERS_ASK[api])

    async def work(fuzzer):
        return await fuzzer.examine(Sequence("groups", 0, (), (asked,)))

    faults = [Fault(api=slowed, delay_ms=slow) for slowed in (api, "DescribeGroups") if slow]
    assert _fuzz(work, *faults).once_different == []


def test_what_differs_in_one_play_only_is_chance():
    async def work(fuzzer):
        return await fuzzer.examine(PLANTED)

    finding = _fuzz(work, Fault(api="Produce", error="REQUEST_TIMED_OUT", count=1))
    assert finding.by_chance
    assert finding.differences == []
    assert finding.once_different
