"""The outcomes of a play as plain fields that can be equal on both sides.

Random values (ids of members, producers and topics) are numbered in order of appearance. Names lose the prefix of
the play. Items left on the cluster by other plays are removed from lists.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final

from broker_sim.metadata import NO_TOPIC_ID
from broker_sim.protocol.message import to_dict
from broker_sim.protocol.record_batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, parse_header, split_batches
from broker_sim.protocol.records import iter_records
from broker_sim_integration.scenarios.helpers.normalise import BROKER_FIELDS, DIFFERING_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.fuzz.play import Play
    from broker_sim_integration.fuzz.sequence import Sequence
    from broker_sim_integration.fuzz.side import FuzzedSide

Fields = dict[str, Any]
"""The fields of one outcome by their path."""

NUMBERED: Final = {"producer_id": "producer", "member_id": "member", "leader": "member"}
MOMENTS: Final = frozenset(
    {"client_host", "last_timestamp", "log_append_time_ms", "transaction_start_time_ms", "controller_epoch"}
)
"""Fields that depend on the clock or on the cluster's history."""
FILTERED: Final = {"ListGroups": ("groups", "group_id"), "ListTransactions": ("transaction_states", "transactional_id")}
"""Responses that also list items of other plays."""
SHARED_OUT: Final = frozenset({"ShareGroupDescribe", "ShareGroupHeartbeat"})
"""Responses in which the partitions, but not their number, depend on the ids of topics."""
UNORDERED: Final = frozenset(
    {
        "active_partitions",
        "active_producers",
        "brokers",
        "configs",
        "groups",
        "members",
        "node_endpoints",
        "partition_responses",
        "partitions",
        "responses",
        "results",
        "results_by_partition",
        "results_by_topic_v3_and_below",
        "results_by_transaction",
        "standby_partitions",
        "topic_partitions",
        "topic_results",
        "topics",
        "transaction_states",
    }
)
"""Lists that have the order of a hash map in Kafka."""
YOUNGEST_FIXED_MS: Final = 1_750_000_000_000
"""Timestamps of drawn records are older than this."""
KEYS: Final = (
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "resource_name",
    "group_id",
    "transactional_id",
    "member_id",
    "index",
    "partition_index",
    "partition",
    "producer_id",
)
NAMED: Final = frozenset({"configs"})
"""Lists whose items are in the path by name, because one side may have more of them."""
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def normalised_play(played: Play, sequence: Sequence, side: FuzzedSide) -> list[Fields]:
    """Return the fields of every outcome."""
    names = _Names(played, side, roles=any(plan.replicas for plan in sequence.topics))
    plays: list[Fields] = []
    for action, outcome in zip(sequence.actions, played.outcomes, strict=True):
        fields: Fields = {"state": outcome.state}
        if outcome.answer is not None:
            plain = to_dict(outcome.answer)
            api = getattr(action, "api", "")
            if api in FILTERED:
                name, key = FILTERED[api]
                prefix = f"{played.references.prefix}."
                plain[name] = [one for one in plain[name] if one[key].startswith(prefix)]
            if api in SHARED_OUT:
                _count_assigned(plain)
            fields |= _leaves({key: names.field(key, value) for key, value in plain.items()}, "")
        plays.append(fields)
    return plays


def _count_assigned(plain: dict[str, Any]) -> None:
    """Replace a member's partitions by their number."""
    for holder in (plain, *(member for one in plain.get("groups", ()) for member in one["members"])):
        if holder.get("assignment") is not None:
            topics = holder["assignment"]["topic_partitions"]
            holder["assignment"] = sum(len(topic["partitions"]) for topic in topics)


class _Names:
    """Numbers random values in order of appearance."""

    def __init__(self, played: Play, side: FuzzedSide, *, roles: bool) -> None:
        self._prefix = f"{played.references.prefix}."
        self._side = side
        self._roles = roles
        self._topics: dict[bytes, str] = {}
        self._numbers: dict[tuple[str, Any], str] = {}
        self._texts: dict[str, str] = {}
        for name, topic_id in played.references.topic_ids.items():
            self._name_topic(topic_id, name.removeprefix(self._prefix))

    def field(self, name: str, value: Any) -> Any:  # noqa: PLR0911 - a case for each kind of field
        """Return the value of a field in a form that is equal on both sides."""
        if name == "topic_id" and isinstance(value, bytes):
            return self._topic(value)
        if name in NUMBERED and value not in ("", -1, None):
            return self._number(NUMBERED[name], value)
        if name == "timestamp" and value > YOUNGEST_FIXED_MS:
            return "now"
        if name in DIFFERING_FIELDS or name in MOMENTS:
            return "given" if value not in ("", -1, None, 0) else "none"
        if name in BROKER_FIELDS:
            return self._brokers(value)
        if name == "records" and value is not None:
            return list(self._batches(value))
        return self._list(name, value) if isinstance(value, list) else self._plain(value)

    def _list(self, name: str, items: list[Any]) -> list[Any]:
        normal_items = [self._item(name, item) for item in items]
        return sorted(normal_items, key=_place) if name in UNORDERED else normal_items

    def _item(self, name: str, item: Any) -> Any:
        return self.field(name, item) if isinstance(item, list) else self._plain(item)

    def _plain(self, value: Any) -> Any:
        match value:
            case dict():
                return {name: self.field(name, item) for name, item in value.items()}
            case str():
                return self._text(value)
            case bytes():
                return self._text(value.decode("latin-1"))
        return value

    def _text(self, text: str) -> str:
        for known, shown in self._texts.items():
            text = text.replace(known, shown)
        return _UUID.sub("UUID", text.replace(self._prefix, ""))

    def _number(self, kind: str, value: Any) -> str:
        if isinstance(value, str) and value.startswith(self._prefix):
            return value.removeprefix(self._prefix)
        count = sum(known == kind for known, _ in self._numbers)
        shown = self._numbers.setdefault((kind, value), f"{kind} {count + 1}")
        if len(str(value)) > 3:
            self._texts[str(value)] = shown
        return shown

    def _topic(self, topic_id: bytes) -> str:
        if topic_id == NO_TOPIC_ID:
            return "none"
        return self._topics.get(topic_id) or self._name_topic(topic_id, "unknown")

    def _name_topic(self, topic_id: bytes, name: str) -> str:
        self._topics[topic_id] = shown = f"id of {name}"
        self._texts[urlsafe_b64encode(topic_id).decode().rstrip("=")] = shown
        return shown

    def _brokers(self, value: Any) -> Any:
        if isinstance(value, list):
            if self._roles:
                return [self._side.brokers.role(one) for one in value]
            return len(value)
        if self._roles or value is None or value < 0:
            return value if value is None else self._side.brokers.role(value)
        return "given"

    def _batches(self, data: bytes) -> Iterator[dict[str, Any]]:
        for batch in split_batches(data):
            header = parse_header(batch)
            is_control = bool(header.attributes & CONTROL_FLAG)
            is_now = is_control or bool(header.attributes & LOG_APPEND_TIME_FLAG)
            yield {
                "base_offset": header.base_offset,
                "leader_epoch": header.partition_leader_epoch,
                "attributes": header.attributes,
                "last_offset_delta": header.last_offset_delta,
                "producer_id": self.field("producer_id", header.producer_id),
                "producer_epoch": header.producer_epoch,
                "base_sequence": header.base_sequence,
                "max_timestamp": "now" if is_now else header.max_timestamp,
                "records": [
                    {
                        "offset": record.offset,
                        "key": _shown(record.key),
                        # A marker's value contains its coordinator's epoch.
                        "value": None if is_control else _shown(record.value),
                        "timestamp": "now" if is_now else record.timestamp,
                    }
                    for record in iter_records(batch)
                ],
            }


def _shown(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _place(item: Any) -> tuple[str, str]:
    """Return the sort key of an item of an unordered list: its name, then the whole item."""
    if not isinstance(item, dict):
        return "", repr(item)
    return repr([item[key] for key in KEYS if key in item]), repr(item)


def _leaves(value: Any, path: str) -> Fields:
    """Return all values without fields, by path; an empty list counts as a value."""
    if isinstance(value, dict):
        items: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, list) and value:
        is_named = path.rpartition(".")[2] in NAMED
        items = [(item["name"] if is_named else index, item) for index, item in enumerate(value)]
    else:
        return {path: value}
    found: Fields = {}
    for name, item in items:
        found |= _leaves(item, f"{path}.{name}" if path else str(name))
    return found
