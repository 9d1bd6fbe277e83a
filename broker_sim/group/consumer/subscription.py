"""What members subscribe to: topics by name, and by regular expressions that the coordinator resolves.

Mirrors `ResolvedRegularExpression`, `TopicRegexResolver` and `UnionSet`. What is refused differs a little
(docs/differences.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.patterns import Pattern, compile_pattern
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.group.consumer.member import ConsumerMember

_RE2: Final = {
    "unterminated character set": "missing closing ]",
    "missing ), unterminated": "missing closing )",
    "unbalanced parenthesis": "regexp/syntax: internal error",
    "nothing to repeat": "missing argument to repetition operator",
    "multiple repeat": "invalid nested repetition operator",
    "bad character range": "invalid character class range",
    "bad escape (end of pattern)": "trailing backslash at end of expression",
    "bad escape": "invalid escape sequence",
    "invalid group reference": "invalid escape sequence",
    "min repeat greater": "invalid repeat count",
    "the repetition number is too large": "invalid repeat count",
    "missing >, unterminated name": "invalid named capture",
    "unknown extension ?<": "invalid named capture",
    "unknown extension": "invalid or unsupported Perl syntax",
}
"""What RE2 says, by how Python's text begins."""


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics that matched, in the metadata of that version, at that time (wall clock)."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def check_regex(regex: str) -> None:
    """Raise `ApiError` INVALID_REGULAR_EXPRESSION for one that cannot be read."""
    try:
        compile_pattern(regex)
    except re.error as error:
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {_said(error)}.",
        ) from None


def _said(error: re.error) -> str:
    """Return what RE2 says of such an error, else what Python says."""
    return next((told for start, told in _RE2.items() if error.msg.startswith(start)), error.msg)


def read_regexes(regexes: Iterable[str]) -> dict[str, Pattern | None]:
    """Return the expressions, None for one that is wrong."""
    patterns: dict[str, Pattern | None] = {}
    for regex in regexes:
        try:
            patterns[regex] = compile_pattern(regex)
        except re.error:
            patterns[regex] = None
    return patterns


def matching_topics(patterns: Mapping[str, Pattern | None], topics: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the topics that each expression matches as a whole; one that is wrong matches none."""
    names = list(topics)
    return {
        regex: frozenset() if one is None else frozenset(filter(one.matches, names)) for regex, one in patterns.items()
    }


def subscribed_topics(member: ConsumerMember, resolved: Mapping[str, ResolvedRegex]) -> list[str]:
    """Return all names that the member subscribes to, in the order of Kafka's sets."""
    names = member.names_in_order
    regex = member.subscribed_topic_regex
    found = resolved.get(regex) if regex else None
    own = hash_order(names, string_hash, copied_capacity(len(names)))
    if found is None or not found.topics:
        return own
    matched = hash_order(sorted(found.topics), string_hash, copied_capacity(len(found.topics)))
    large, small = (own, matched) if len(own) > len(matched) else (matched, own)
    return list(dict.fromkeys([*large, *small]))
