"""Outcomes stand in an answer as in Kafka's hash tables; seen at 4.3.1 for topics of random ids."""

from broker_sim.errors import ErrorCode
from broker_sim.share.share_state import SharePartitionKey, StateOutcome
from broker_sim.share.state_apis import DELETE

FIRST, SECOND = bytes(15) + b"\x09", bytes(15) + b"\x02"
"""Their hash codes are 9 and 2: so are their buckets."""


def test_outcomes_stand_in_the_order_of_hash_tables():
    arguments = [(FIRST, 17), (FIRST, 3), (FIRST, 16), (SECOND, 1), (FIRST, 1)]
    done = StateOutcome(ErrorCode.NONE, None)
    keys = [SharePartitionKey("g", *partition) for partition in arguments]
    response = DELETE.response_of(dict.fromkeys(keys, done))
    assert [
        (topic.topic_id, [partition.partition for partition in topic.partitions]) for topic in response.results
    ] == [(SECOND, [1]), (FIRST, [16, 17, 1, 3])]
