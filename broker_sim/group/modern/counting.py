"""Counts of what members of a group ask for; mirrors `Utils.incValue` and `ConsumerGroup.subscriptionType`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.hash_order.java_order import HashTable, TimelineMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.group.modern.topic_counts import SubscriptionCount


def is_homogeneous(regexes: Mapping[str, int], topics: Mapping[str, SubscriptionCount], members: int) -> bool:
    """Return whether as many members as there are subscribe to the same topics."""
    if not regexes:
        return all(count.by_name == members for count in topics.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(count.by_regex == 1 and count.by_name == 0 for count in topics.values())


def add_count(counts: dict[str, int], name: str | None, by: int) -> None:
    """Add to a count; a name whose count is 0 is forgotten, and None and "" are no names."""
    if name:
        number = counts.get(name, 0) + by
        if number > 0 and isinstance(counts, TimelineMap):
            counts.put(name, number)
        elif number > 0 and isinstance(counts, HashTable) and name not in counts:
            counts.add(name, number)
        elif number > 0:
            counts[name] = number
        else:
            counts.pop(name, None)


def most_wanted(names: Iterable[str], counts: Mapping[str, int]) -> str | None:
    """Return the name with the highest count, the first of several."""
    return max(names, key=lambda name: counts[name], default=None)
