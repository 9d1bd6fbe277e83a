"""Member subscriptions: by topic name, and by regular expressions that the coordinator resolves.

Mirrors `ResolvedRegularExpression`, `TopicRegexResolver`, `UnionSet`, and `maybeUpdateRegularExpressions` and
`handleRegularExpressionsResult` of `GroupMetadataManager`. The set of valid expressions differs slightly
(docs/reference/differences.md). A heartbeat never waits for an expression: Kafka resolves on a separate thread, here it
happens in the next loop iteration, or outside the loop if it may take long. The result raises the group epoch.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.patterns import MAX_CHARACTERS, Pattern, compile_pattern, match_at_once_or_beside
from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.consumer.records import ResolvedRegex
from broker_sim.group.modern.records import epoch_record
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable, copied_capacity, hash_order, table_capacity
from broker_sim.regex.re2j import RegexError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.group.consumer.consumer_group import ConsumerGroup
    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.group import GroupClient
    from broker_sim.group.modern.assigned_groups import MemberChange, ShardParts
    from broker_sim.group.records import GroupRecord
    from broker_sim.metadata import MetadataImage

    Change = MemberChange[ConsumerGroup, ConsumerMember, Mapping[bytes, Sequence[int]] | None]


def check_regex(regex: str) -> None:
    """Raise `ApiError` INVALID_REGULAR_EXPRESSION if the expression is invalid."""
    try:
        compile_pattern(regex)
    except RegexError as error:
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def read_regexes(regexes: Iterable[str]) -> dict[str, Pattern | None]:
    """Return the compiled expressions, None for invalid ones."""
    patterns: dict[str, Pattern | None] = {}
    for regex in regexes:
        try:
            patterns[regex] = compile_pattern(regex)
        except RegexError:
            patterns[regex] = None
    return patterns


def matching_topics(patterns: Mapping[str, Pattern | None], topics: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the topics that each expression matches completely; an invalid one matches none."""
    names = list(topics)
    return {
        regex: frozenset() if pattern is None else frozenset(filter(pattern.matches, names))
        for regex, pattern in patterns.items()
    }


def subscribed_topics(member: ConsumerMember, resolved: Mapping[str, ResolvedRegex]) -> list[str]:
    """Return all topic names that the member subscribes to, in the order of Kafka's sets."""
    names = member.names_in_order
    regex = member.subscribed_topic_regex
    resolved_regex = resolved.get(regex) if regex else None
    own = hash_order(names, string_hash, copied_capacity(len(names)))
    if resolved_regex is None or not resolved_regex.topics:
        return own
    matched = hash_order(sorted(resolved_regex.topics), string_hash, copied_capacity(len(resolved_regex.topics)))
    large, small = (own, matched) if len(own) > len(matched) else (matched, own)
    return list(dict.fromkeys([*large, *small]))


MIN_REFRESH_INTERVAL_MS: Final = 10_000


class RegexChange(Enum):
    """The change of a member's regular expression by a heartbeat."""

    NONE = 0
    UPDATED = 1
    """The expression changed, and is not yet resolved."""
    UPDATED_AND_RESOLVED = 2


class Regexes:
    """Resolves the regular expressions of a shard's groups."""

    def __init__(self, parts: ShardParts, find: Callable[[str], ConsumerGroup]) -> None:
        self._parts = parts
        self._find = find
        self._scheduled: set[str] = set()
        """Groups whose expressions are being resolved."""
        self._new_topics_version = parts.broker.image().version
        """Version of the metadata that last had a new topic."""

    def topics_created(self, image: MetadataImage) -> None:
        """Have expressions resolved again on the next heartbeats, because there are new topics."""
        self._new_topics_version = image.version

    def update(self, change: Change) -> tuple[RegexChange, list[GroupRecord]]:
        """Apply a member's heartbeat; return the change, and the tombstone of an expression without subscribers.

        If this heartbeat triggers the resolution, expressions match only topics that its client may describe.
        Raises `ApiError` INVALID_REGULAR_EXPRESSION.
        """
        group = change.group
        old, new = change.member.subscribed_topic_regex, change.updated.subscribed_topic_regex
        is_new = bool(new) and new != old and new not in group.regexes
        if is_new:
            assert new is not None
            check_regex(new)
        outcome = RegexChange.NONE if old == new else _change(group, old, new)
        is_unused = old and old != new and group.regexes.get(old) == 1
        self._resolve_if_due(change, is_new=is_new)
        return outcome, [records.regex_tombstone(group.group_id, old)] if old and is_unused else []

    def _resolve_if_due(self, change: Change, *, is_new: bool) -> None:
        """Schedule the resolution of the group's expressions if needed, and if the last one is not too recent."""
        group = change.group
        if group.group_id in self._scheduled or not (is_new or group.regexes):
            return
        now_ms = self._parts.broker.clock.wall_clock_ms()
        # All expressions of a group are resolved together.
        last = next(iter(group.resolved.values()), None)
        if last is not None and now_ms <= last.timestamp_ms + MIN_REFRESH_INTERVAL_MS:
            return
        regexes = group.regexes_with(change.member, change.updated)
        interval_ms = self._parts.broker.config.group_consumer_regex_refresh_interval_ms
        if regexes and (
            is_new
            or last is None
            or len(regexes) != len(group.resolved)
            or last.version < self._new_topics_version
            or now_ms > last.timestamp_ms + interval_ms
        ):
            self._scheduled.add(group.group_id)
            ordered = _in_order(group, regexes)
            self._parts.broker.call_later(0, self._resolve, group.group_id, ordered, change.client)

    def _resolve(self, group_id: str, regexes: list[str], client: GroupClient) -> None:
        broker = self._parts.broker
        image, now_ms = broker.image(), broker.clock.wall_clock_ms()
        hidden = client.hidden_topics(image.topics)
        visible_topics = [name for name in image.topics if name not in hidden]

        def done(matches: Mapping[str, frozenset[str]]) -> None:
            self._scheduled.discard(group_id)
            resolved = {regex: ResolvedRegex(topics, image.version, now_ms) for regex, topics in matches.items()}
            self._parts.runtime.perform(lambda: self._resolved(group_id, resolved, image))

        if sum(map(len, regexes)) > MAX_CHARACTERS:
            broker.process.run_beside(lambda: matching_topics(read_regexes(regexes), visible_topics), done)
            return
        patterns = read_regexes(regexes)
        match_at_once_or_beside(
            partial(matching_topics, patterns, visible_topics),
            done,
            filter(None, patterns.values()),
            visible_topics,
            broker.process.run_beside,
        )

    def _resolved(self, group_id: str, resolved: Mapping[str, ResolvedRegex], image: MetadataImage) -> Result[None]:
        try:
            group = self._find(group_id)
        except ApiError:
            return Result()  # the group is removed
        records_of_result, group_epoch = self._records(group, resolved, image)
        if group_epoch is not None:
            group.metadata_refreshed(group_epoch)
        return Result(records=records_of_result)

    def _records(
        self, group: ConsumerGroup, resolved: Mapping[str, ResolvedRegex], image: MetadataImage
    ) -> tuple[list[GroupRecord], int | None]:
        """Return the records of the result, and the new group epoch, None if it is unchanged."""
        regex_records = []
        topics = group.topics.copied()
        has_changed = False
        for regex, new in resolved.items():
            if regex not in group.regexes:
                continue
            old = group.resolved.get(regex)
            old_topics = frozenset[str]() if old is None else old.topics
            if old_topics != new.topics:
                has_changed = True
                topics.add_regex(old_topics, -1)
                topics.add_regex(new.topics, 1)
            regex_records.append(records.regex(group.group_id, regex, new))
        metadata_hash = self._parts.hashes.of(topics, image)
        if not has_changed and metadata_hash == group.metadata_hash:
            return regex_records, None
        group_epoch = group.group_epoch + 1
        regex_records.append(epoch_record(group.kind, group.group_id, group_epoch, metadata_hash))
        self._parts.counters.count_rebalance(group.kind.name)
        return regex_records, group_epoch


def _change(group: ConsumerGroup, old: str | None, new: str | None) -> RegexChange:
    """Return the kind of change between two expressions, where "" and None stand for no expression."""
    if not new:
        return RegexChange.UPDATED_AND_RESOLVED if old else RegexChange.UPDATED
    is_resolved = new in group.regexes and new in group.resolved
    return RegexChange.UPDATED_AND_RESOLVED if is_resolved else RegexChange.UPDATED


def _in_order(group: ConsumerGroup, regexes: Mapping[str, int]) -> list[str]:
    """Return the expressions in the order in which Kafka writes their records."""
    expressions = group.regexes.in_order()
    counts: HashTable[str, None]
    counts = HashTable(string_hash, table_capacity(int(len(expressions) / 0.75 + 1)))
    for regex in expressions:
        counts.put(regex, None)
    for regex in regexes:
        if regex not in counts:
            counts.add(regex, None)
    ordered = [regex for regex in counts.in_order() if regex in regexes]
    return hash_order(ordered, string_hash, table_capacity(len(ordered)))
