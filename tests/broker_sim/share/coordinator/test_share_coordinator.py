"""Tests of whole requests to the share coordinator."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata import changes_between
from broker_sim.share.share_state import StateOutcome, StateSummary
from broker_sim.share.state_apis import DELETE, INITIALIZE, STATE_APIS, SUMMARY, InitialState
from tests.broker_sim.share.named_values import ACKNOWLEDGED, state_batch

NOTHING = (0, None)


def test_share_partitions_of_one_request_fail_independently(bench, key):
    unknown = key._replace(partition=7)
    arguments = [(key, InitialState(1, -1)), (unknown, InitialState(1, -1))]
    response = bench.ask(INITIALIZE, arguments)
    (topic,) = response.results
    assert [(p.partition, ErrorCode(p.error_code)) for p in topic.partitions] == [
        (0, ErrorCode.NONE),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("api", STATE_APIS)
def test_request_without_group_or_topics_gets_an_empty_response(bench, api, key):
    assert bench.ask(api, []).results == []
    arguments = [(key, api.arguments(*range(len(api.arguments._fields))))]
    if api.verb != "write state":
        assert bench.ask(api, arguments, group="").results == []


@pytest.mark.parametrize("api", STATE_APIS)
def test_request_with_only_an_empty_topic_gets_an_empty_response(bench, api, key):
    request = api.request_of(key.group_id, [])
    request.topics = [api.request_topic(key.topic_id, [])]
    answers = []
    bench.coordinator.serve(api, request, answers.append)
    assert answers[0].results == []


@pytest.mark.parametrize("api", STATE_APIS)
def test_one_empty_topic_empties_all_responses_but_that_of_initialize(bench, api, key):
    values = {"initialize state": (1, -1), "write state": (1, 0, 0, 0, ()), "delete state": ()}
    request = api.request_of(key.group_id, [(key, api.arguments(*values.get(api.verb, (0,))))])
    request.topics.append(api.request_topic(bytes(16), []))
    answers = []
    bench.coordinator.serve(api, request, answers.append)
    assert bool(answers[0].results) == (api is INITIALIZE)


def test_response_waits_until_the_write_is_replicated(bench, key):
    bench.log.is_held = True
    answers = []
    request = INITIALIZE.request_of(key.group_id, [(key, InitialState(1, -1))])
    bench.coordinator.serve(INITIALIZE, request, answers.append)
    assert bench.summary() is None
    assert answers == []
    bench.log.release()
    assert INITIALIZE.outcomes_of(key.group_id, answers[0]) == {key: StateOutcome()}
    assert bench.summary().state_epoch == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, "Messages are rejected since there are fewer in-sync replicas than required."),
        (
            ErrorCode.REQUEST_TIMED_OUT,
            "CoordinatorWriteEvent(name=initialize-share-group-state) timed out after 5000ms",
        ),
    ],
)
def test_failed_append_returns_an_error_and_changes_nothing(bench, error, text):
    bench.log.fails_with = error
    assert bench.initialize() == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"Unable to initialize share group state: {text}",
    )
    bench.log.fails_with = ErrorCode.NONE
    assert bench.summary() == StateSummary()


def test_broker_that_does_not_lead_returns_not_coordinator(bench):
    bench.coordinator.runtime.resigned(0)
    assert bench.delete() == (
        ErrorCode.NOT_COORDINATOR,
        "Unable to delete share group state: This is not the correct coordinator.",
    )
    assert bench.summary()[:2] == (
        ErrorCode.NOT_COORDINATOR,
        "Unable to read share group state summary: This is not the correct coordinator.",
    )


def test_loading_coordinator_returns_load_in_progress(bench, key):
    bench.coordinator.runtime.resigned(0)
    bench.coordinator.runtime.elected(0, 2)
    answers = []
    arguments = [(key, SUMMARY.arguments(-1))]
    bench.coordinator.serve(SUMMARY, SUMMARY.request_of(key.group_id, arguments), answers.append)
    (outcome,) = SUMMARY.outcomes_of(key.group_id, answers[0]).values()
    assert outcome.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_state_of_deleted_topics_is_deleted(bench, key, make_image):
    bench.initialize()
    bench.write(state_batch(0, 4, ACKNOWLEDGED))
    before, bench.image = bench.image, make_image([], version=2)
    bench.coordinator.on_image(changes_between(before, bench.image), bench.image)
    assert bench.log.records[-1].value is None
    assert bench.shard.states == {}
    bench.image = make_image([key.topic_id], version=3)
    assert bench.ask(DELETE, [(key, DELETE.arguments())]).results[0].partitions[0].error_code == 0
