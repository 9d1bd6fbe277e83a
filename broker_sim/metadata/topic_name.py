"""Valid names of topics; mirrors `org.apache.kafka.common.internals.Topic`.

Error messages are like Kafka's, because clients see them.
"""

from typing import Final

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
MAX_NAME_LENGTH: Final = 249

_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def invalid_topic_name(name: str) -> str | None:
    """Return Kafka's error message for an invalid name, None if the name is valid."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.issuperset(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None if reason is None else f"Topic name is invalid: {reason}"


def is_internal_topic(name: str) -> bool:
    """Return whether the topic belongs to the cluster itself."""
    return name in INTERNAL_TOPICS


def has_collision_chars(name: str) -> bool:
    """Return whether the name may collide with another topic's name in metrics."""
    return "." in name or "_" in name


def unify_collision_chars(name: str) -> str:
    """Return the name as it appears in metrics, which must be unique."""
    return name.replace(".", "_")
