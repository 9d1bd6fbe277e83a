"""Topics that a subtopology joins have equally many partitions; mirrors `CopartitionedTopicsEnforcer`.

Equal keys are then in partitions of the same number, so one task reads them. Such topics are a copartition
group. Repartition topics are either fixed (the application says how many partitions they have) or flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.java_text import text_order
from broker_sim.group.streams.status import Status
from broker_sim.group.streams.topics.topic_configuration_error import TopicConfigurationError
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet


def enforce_copartitioning(
    group: Sequence[str], fixed: AbstractSet[str], flexible: AbstractSet[str], partition_count: Callable[[str], int]
) -> dict[str, int]:
    """Return how many partitions the group's repartition topics have.

    `group` is in the order of Kafka's set; `fixed` and `flexible` are all repartition topics of the topology;
    `partition_count(topic)` tells what is known by now. Raises `TopicConfigurationError` if they cannot
    have equally many.

    With other topics in the group their number counts. Without any it is the number of the fixed topics. As in
    Kafka, those of the whole topology have to agree then. Without fixed ones it is the largest number.
    """
    if not group:
        return {}
    counts = {topic: partition_count(topic) for topic in group}
    repartition = {topic: count for topic, count in counts.items() if topic in fixed | flexible}
    others = {topic: count for topic, count in counts.items() if topic not in repartition}
    if others:
        needed = _same_count(set(others.values()), others)
    elif fixed:
        needed = _same_count({partition_count(topic) for topic in fixed}, repartition)
    else:
        needed = max(repartition.values())
    for topic in hash_order(repartition, string_hash):
        if topic in fixed and repartition[topic] != needed:
            raise TopicConfigurationError(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{repartition[topic]}] of repartition topic [{topic}]"
                f" doesn't match number of partitions [{needed}] of the source topic.",
            )
    return dict.fromkeys(repartition, needed)


def _same_count(found: AbstractSet[int], told: Mapping[str, int]) -> int:
    """Return the one number that was found; the error tells of the topics in `told`."""
    if len(found) == 1:
        return next(iter(found))
    topics = ", ".join(f"{topic}={told[topic]}" for topic in sorted(told, key=text_order))
    raise TopicConfigurationError(
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        f"Following topics do not have the same number of partitions: [{{{topics}}}]",
    )
