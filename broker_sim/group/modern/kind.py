"""A kind of groups with server-side assignment; API and record names derive from its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of groups: consumer, share or streams.

    For example, configurations of `consumer` begin with `group.consumer.` and `consumer.`, records and APIs with
    `ConsumerGroup`, and messages say "consumer group".
    """

    name: str
    replaces_classic: bool = True
    """Whether a group of this kind may replace an empty classic group."""

    @property
    def prefix(self) -> str:
        """The prefix of API and record names, such as `ConsumerGroup`."""
        return f"{self.name.capitalize()}Group"

    def key(self, record_type: str, *fields: str) -> Any:
        """Return a record key of that type, such as `MemberMetadata`."""
        return getattr(record_messages, f"{self.prefix}{record_type}Key")(*fields)

    def value(self, record_type: str, *fields: object) -> Any:
        """Return a record value of that type."""
        return self.value_class(record_type)(*fields)

    def value_class(self, record_type: str) -> Any:
        """Return the class of record values of that type."""
        return getattr(record_messages, f"{self.prefix}{record_type}Value")

    def not_found(self, group_id: str) -> ApiError:
        """Return the GROUP_ID_NOT_FOUND error for an unknown group."""
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"{self.name.capitalize()} group {group_id} not found.")

    def of_another_kind(self, group_id: str) -> ApiError:
        """Return the GROUP_ID_NOT_FOUND error for a group of another kind."""
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {self.name} group.")
