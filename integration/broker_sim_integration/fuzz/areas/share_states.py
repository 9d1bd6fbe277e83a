"""The state of share partitions: requests of leaders and group coordinators to the share coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import Area, once, pick, request, several
from broker_sim_integration.fuzz.sequence import TopicPlan

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

AT: Final = "share state"
TOPICS: Final = ("<topic1>", "<topic1>", "<topic1>", "<topic2>", "<topic3>")
EPOCHS: Final = (0, 1, 1, 2, -1)


def _state(rng: random.Random, api: str, partition_of: Any, versions: tuple[int, ...]) -> Request:
    topics = []
    for name in several(rng, [*TOPICS, pick(rng, TOPICS, ("<nothing>",), 12)]):
        numbers = several(rng, [0, 0, 0, pick(rng, [1], (7, -1), 4)])
        partitions = [{"partition": number, **partition_of(rng)} for number in numbers]
        topics.append({"topic_id": f"{name[:-1]}.id>", "partitions": pick(rng, [partitions], ([],), 30)})
    return request(
        "a",
        pick(rng, [AT], ("other share state",), 40),
        api,
        rng.choice(versions),
        group_id=pick(rng, ["<group1>", "<group1>", "<group2>"], ("",), 25),
        topics=once(topics, "topic_id"),
    )


def _initial(rng: random.Random) -> dict[str, Any]:
    return {"state_epoch": rng.choice(EPOCHS), "start_offset": rng.choice([-1, 0, 0, 3])}


def initialize(rng: random.Random) -> Request:
    """Initialize the state of share partitions."""
    return _state(rng, "InitializeShareGroupState", _initial, (0,))


def _batch(rng: random.Random) -> dict[str, Any]:
    first = rng.randint(0, 12)
    return {
        "first_offset": first,
        "last_offset": first + rng.randint(0, 5),
        "delivery_state": rng.choice([0, 2, 2, 4]),
        "delivery_count": rng.randint(1, 3),
    }


def _written(rng: random.Random) -> dict[str, Any]:
    return {
        "state_epoch": rng.choice(EPOCHS),
        "leader_epoch": rng.choice(EPOCHS),
        "start_offset": rng.choice([-1, 0, 0, 2, 5]),
        "delivery_complete_count": rng.choice([-1, 0, 1, 5]),
        "state_batches": [_batch(rng) for _ in range(rng.randint(0, 4))],
    }


def write(rng: random.Random) -> Request:
    """Write changes of the state."""
    return _state(rng, "WriteShareGroupState", _written, (0, 1))


def _reader(rng: random.Random) -> dict[str, Any]:
    return {"leader_epoch": rng.choice(EPOCHS)}


def read(rng: random.Random) -> Request:
    """Read the state, as a leader."""
    return _state(rng, "ReadShareGroupState", _reader, (0,))


def summarize(rng: random.Random) -> Request:
    """Read the summary of the state."""
    return _state(rng, "ReadShareGroupStateSummary", _reader, (0, 1))


def delete(rng: random.Random) -> Request:
    """Delete the state."""
    return _state(rng, "DeleteShareGroupState", lambda _: {}, (0,))


def _delete_topic(rng: random.Random) -> Request:
    del rng
    return request("a", "first", "DeleteTopics", 6, topics=[{"name": "<topic3>"}], timeout_ms=10_000)


AREA = Area(
    "share_states",
    (TopicPlan("topic1", 2), TopicPlan("topic2"), TopicPlan("topic3")),
    {initialize: 5, write: 9, read: 7, summarize: 4, delete: 1, _delete_topic: 1},
    lengths=(15, 40),
)
