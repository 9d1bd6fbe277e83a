"""Whole responses as plain fields, without those that differ between any two clusters.

All fields that may differ are declared here: random ids (of clusters, topics, producers, fetch sessions),
addresses, the controller (a broker returns any live broker as the controller, because none of them is), and
throttle times, which depend on quotas and load. Broker ids are replaced by roles, because `first` need not be
the same broker id on both sides.
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
"""Fields whose values are not compared, only whether they are set."""
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
"""Fields that contain broker ids."""

UNORDERED_FIELDS: Final = frozenset({"brokers", "node_endpoints"})
"""Lists whose order Kafka does not define; they are sorted by the broker's role."""


KEY_FIELDS: Final = {
    "api_keys": "api_key",
    "configs": "name",
    "finalized_features": "name",
    "supported_features": "name",
    "synonyms": "name",
}
"""Lists whose items have a key, by list; paths contain the key instead of the index."""

BROKER_RESOURCE: Final = 4
SHOWN_BYTES: Final = 256


def normalised(message: Struct, role: Callable[[int], str], unordered: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields as plain JSON values by path, such as `topics.0.error_code`.

    `role` returns the role of a broker id; `unordered` names further lists of this message whose order Kafka
    does not define.
    """
    plain = {name: _field(name, value, role) for name, value in to_dict(message).items()}
    _sort_lists(plain, UNORDERED_FIELDS.union(unordered))
    return dict(_leaves(plain, ""))


def as_first_repeat(value: Any, scenario: str, repeat: int) -> Any:
    """Return the value with the topic names of the scenario's first repeat instead of those of this repeat."""
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
    """Sort the lists with these names, innermost first."""
    for name, field in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(field, dict | list):
            _sort_lists(field, names)
            if name in names and isinstance(field, list):
                field.sort(key=repr)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each leaf value with its path; an empty list is a leaf, too."""
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
    """Replace the broker id of a broker resource by its role; other resources stay as they are."""
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
