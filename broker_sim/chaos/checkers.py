"""Checkers of histories: each returns a text about a violation, or "".

They are independent of clusters and applications: `History` passes them the records of the brokers, the notes of
the application and its requests, in virtual and in real time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

SHOWN: Final = 10
"""Maximum number of items in a text."""


class Ended(NamedTuple):
    """A committed transaction: the topics it has written to, and the groups whose offsets it has committed."""

    transactional_id: str
    topics: frozenset[str]
    groups: frozenset[str]


def lost(expected: Iterable[Hashable], outcome: Iterable[Hashable]) -> str:
    """Check that all expected items are in the outcome."""
    rest = dict.fromkeys(expected)
    for each in outcome:
        rest.pop(each, None)
    return f"lost: {_texts([*rest])}" if rest else ""


def twice(items: Iterable[Hashable]) -> str:
    """Check that no item occurs more than once."""
    often = [each for each, count in Counter(items).items() if count > 1]
    return f"twice: {_texts(often)}" if often else ""


def disordered(inputs: Iterable[tuple[Hashable, Hashable]], outcome: Iterable[Hashable]) -> str:
    """Check that, for each key, items first occur in the order of the inputs, which are (key, item).

    An item may occur again: redelivery does not change the order.
    """
    sent = {item: (key, number) for number, (key, item) in enumerate(inputs)}
    last: dict[Hashable, tuple[int, Hashable]] = {}
    for item in dict.fromkeys(outcome):
        key, number = sent.get(item, (None, -1))
        before = last.get(key)
        if number >= 0 and before is not None and before[0] > number:
            return f"key {_text(key)}: {_text(item)} comes after {_text(before[1])}, which was sent later"
        if number >= 0:
            last[key] = number, item
    return ""


def not_once(inputs: Sequence[Hashable], outputs: Sequence[Hashable]) -> str:
    """Check that each input has exactly one output, and each output an input."""
    sources = set(inputs)
    without = [each for each in dict.fromkeys(outputs) if each not in sources]
    extra = f"without an input: {_texts(without)}" if without else ""
    return "; ".join(filter(None, (lost(inputs, outputs), twice(outputs), extra)))


def torn(transactions: Iterable[Ended], topic: str, group: str) -> str:
    """Check that each transaction that wrote to a topic also committed offsets of a group."""
    wrong = [each.transactional_id for each in transactions if topic in each.topics and group not in each.groups]
    if not wrong:
        return ""
    return f"{topic} was written without offsets of {group} by transactions of {_texts([*dict.fromkeys(wrong)])}"


def gone_back(steps: Iterable[tuple[Hashable, Any]]) -> str:
    """Check that the numbers of each reader, or of each group and partition, never decrease."""
    highest: dict[Hashable, Any] = {}
    for who, number in steps:
        if who in highest and number < highest[who]:
            return f"{_text(who)} goes back from {highest[who]} to {number}"
        highest[who] = number
    return ""


def uncommitted(
    reads: Iterable[tuple[tuple[str, int, int], Hashable]], committed: Iterable[tuple[str, int, int]]
) -> str:
    """Check that each read ((topic, partition, offset), value) is of a committed record."""
    positions = {*committed}
    wrong: defaultdict[str, list[Hashable]] = defaultdict(list)
    for (topic, partition, offset), value in reads:
        if (topic, partition, offset) not in positions:
            wrong[f"{topic}-{partition}"].append(value)
    return "; ".join(f"{name}: {_texts(values)} was read and is not committed" for name, values in wrong.items())


def _texts(items: Sequence[Hashable]) -> str:
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return ", ".join(map(_text, items[:SHOWN])) + more


def _text(item: object) -> str:
    if isinstance(item, tuple):
        return " ".join(map(_text, item))
    return item.decode(errors="backslashreplace") if isinstance(item, bytes) else str(item)
