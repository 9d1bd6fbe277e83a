"""Response topics and partitions have the order of Kafka's hash tables; observed at 4.3.1 for random topic ids."""

from broker_sim.errors import ErrorCode
from broker_sim.share.share_state import SharePartitionKey, StateOutcome
from broker_sim.share.state_apis import DELETE

FIRST, SECOND = bytes(15) + b"\x09", bytes(15) + b"\x02"
"""Their hash codes, and therefore their buckets, are 9 and 2."""


def test_response_has_the_order_of_kafkas_hash_tables():
    arguments = [(FIRST, 17), (FIRST, 3), (FIRST, 16), (SECOND, 1), (FIRST, 1)]
    done = StateOutcome(ErrorCode.NONE, None)
    keys = [SharePartitionKey("g", *partition) for partition in arguments]
    response = DELETE.response_of(dict.fromkeys(keys, done))
    assert [
        (topic.topic_id, [partition.partition for partition in topic.partitions]) for topic in response.results
    ] == [(SECOND, [1]), (FIRST, [16, 17, 1, 3])]
