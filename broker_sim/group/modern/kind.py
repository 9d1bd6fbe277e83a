"""A kind of groups that the coordinator assigns: one name, from which those of APIs and records follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages


@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of groups.

    For `consumer` configurations begin with `group.consumer.` and `consumer.`, records and APIs with
    `ConsumerGroup`, and texts call it "consumer group".
    """

    name: str
    replaces_classic: bool = True
    """Whether a member may take the place of an empty classic group."""

    @property
    def prefix(self) -> str:
        """The beginning of the names of its APIs and records."""
        return f"{self.name.capitalize()}Group"

    def key(self, record_type: str, *fields: str) -> Any:
        """Return the key of a record of that type, such as `MemberMetadata`."""
        return getattr(record_messages, f"{self.prefix}{record_type}Key")(*fields)

    def value(self, record_type: str, *fields: object) -> Any:
        """Return the value of a record of that type."""
        return self.value_class(record_type)(*fields)

    def value_class(self, record_type: str) -> Any:
        """Return the class of the values of records of that type."""
        return getattr(record_messages, f"{self.prefix}{record_type}Value")

    def not_found(self, group_id: str) -> ApiError:
        """Return GROUP_ID_NOT_FOUND for a member that does not join."""
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"{self.name.capitalize()} group {group_id} not found.")

    def of_another_kind(self, group_id: str) -> ApiError:
        """Return GROUP_ID_NOT_FOUND where the id is one of a group of another kind."""
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {self.name} group.")
