"""Whole responses as plain fields, without those that may differ between any two clusters.

Which fields may differ is declared here and nowhere else: ids drawn at random (of clusters, topics,
producers, fetch sessions), addresses, the
controller (a broker names any live broker, because none of them is the controller), and throttle
times, which depend on quotas and load. Numbers of brokers become their roles, because `first` need
not be the same number on both sides.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol.message import to_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from broker_sim.protocol.message import Struct

DIFFERING_FIELDS: Final = frozenset(
    {
        "cluster_id",
        "controller_id",
        "finalized_features_epoch",
        "host",
        "port",
        "producer_id",
        "session_id",
        "throttle_time_ms",
        "topic_id",
    }
)
"""Fields whose values are not compared; only whether they are set is."""
NO_SESSION: Final = ("session_id", 0)

BROKER_FIELDS: Final = frozenset(
    {
        "broker_id",
        "eligible_leader_replicas",
        "isr_nodes",
        "last_known_elr",
        "leader_id",
        "node_id",
        "offline_replicas",
        "preferred_read_replica",
        "replica_nodes",
    }
)
"""Fields that contain numbers of brokers."""

UNORDERED_FIELDS: Final = frozenset({"brokers", "node_endpoints"})
"""Lists whose order Kafka does not define; sorted by the role of the broker."""


KEY_FIELDS: Final = {
    "api_keys": "api_key",
    "configs": "name",
    "finalized_features": "name",
    "supported_features": "name",
    "synonyms": "name",
}
"""Lists whose items have a key: it stands in the path instead of the index."""

BROKER_RESOURCE: Final = 4
SHOWN_BYTES: Final = 256


def normalised(message: Struct, role: Callable[[int], str], unordered: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields as plain JSON values, each under its path: `topics.0.error_code`.

    `role` returns the role of a broker; `unordered` names lists of this message whose order Kafka
    does not define.
    """
    plain = {name: _field(name, value, role) for name, value in to_dict(message).items()}
    _sort_lists(plain, UNORDERED_FIELDS.union(unordered))
    return dict(_leaves(plain, ""))


def as_first_repeat(value: Any, scenario: str, repeat: int) -> Any:
    """Return what was observed, with the names that topics have in the first repeat."""
    match value:
        case str():
            return value.replace(f"{scenario}.{repeat}.", f"{scenario}.1.")
        case dict():
            return {key: as_first_repeat(item, scenario, repeat) for key, item in value.items()}
        case list():
            return [as_first_repeat(item, scenario, repeat) for item in value]
        case _:
            return value


def _sort_lists(value: Any, names: Collection[str]) -> None:
    """Sort the lists of these names, the innermost first."""
    for name, field in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(field, dict | list):
            _sort_lists(field, names)
            if name in names and isinstance(field, list):
                field.sort(key=repr)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each value without fields of its own, with its path; an empty list is a value too."""
    match value:
        case dict() if value:
            named = list(value.items())
        case [dict(), *_]:
            key = KEY_FIELDS.get(path.rpartition(".")[2])
            named = [(str(item.get(key, index)), item) for index, item in enumerate(value)]
        case _:
            yield path, value
            return
    for name, field in named:
        yield from _leaves(field, f"{path}.{name}" if path else name)


def _field(name: str, value: Any, role: Callable[[int], str]) -> Any:
    if name in DIFFERING_FIELDS:
        return "given" if _given(name, value) else "none"
    if name in BROKER_FIELDS:
        return [role(broker) for broker in value] if isinstance(value, list) else role(value)
    return _plain(value, role)


def _name_broker(fields: dict[str, Any], role: Callable[[int], str]) -> None:
    """Name the resource of a configuration by the role of the broker, if it is one."""
    name = fields.get("resource_name", "")
    if fields.get("resource_type") == BROKER_RESOURCE and name.isdecimal():
        fields["resource_name"] = role(int(name))


def _plain(value: Any, role: Callable[[int], str]) -> Any:
    match value:
        case dict():
            _name_broker(value, role)
            return {name: _field(name, field, role) for name, field in value.items()}
        case list():
            return [_plain(item, role) for item in value]
        case bytes():
            return value.hex() if len(value) <= SHOWN_BYTES else _digest(value)
        case _:
            return value


def _digest(value: bytes) -> str:
    return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:16]}"


def _given(name: str, value: Any) -> bool:
    if isinstance(value, bytes):
        return bool(value.strip(b"\0"))
    return value not in {None, "", -1} and (name, value) != NO_SESSION
