"""The compared parts of a response: its errors, its names, and the allowed operations."""

from __future__ import annotations

from typing import Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol.message import Struct

_NAMES: Final = frozenset(
    {"group_id", "key", "name", "principal_name", "resource_name", "topic", "topic_name", "transactional_id", "user"}
)

_PRESENT: Final = frozenset({"api_keys", "configs", "finalized_features", "supported_features"})


def outcome_of(answer: Any, *, has_texts: bool = False) -> Any:
    """Return plain values; lists are sorted, because many are hash tables in Kafka.

    Configurations and features are reduced to their presence: other comparisons cover their values.
    With `has_texts` the outcome includes error messages.
    """
    if isinstance(answer, list):
        return sorted((outcome_of(each, has_texts=has_texts) for each in answer), key=repr)
    outcome: dict[str, Any] = {}
    for name in answer.__slots__:
        value = getattr(answer, name)
        if name.endswith("error_code"):
            outcome[name] = ErrorCode(value).name
        elif name.endswith("error_message"):
            if has_texts:
                outcome[name] = value
        elif name.endswith("authorized_operations") or name in _NAMES:
            outcome[name] = value
        elif name in _PRESENT:
            outcome[name] = bool(value)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            inner = [each for each in outcome_of(value, has_texts=has_texts) if each]
            if inner:
                outcome[name] = inner
    return outcome
