"""Share partitions as tables: how far a group has come in each, and which records are in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from broker_sim.cli.columns import UNKNOWN, Column, age_text, fitted_table, number_text, topic_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

ACQUIRED: Final = "Acquired"
AVAILABLE: Final = "Available"


def share_rows(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the share partitions of the groups in an answer, each with the id of its group."""
    return [
        {"group": group["id"], **partition}
        for group in answer.get("groups") or []
        for partition in group["share_partitions"]
    ]


def is_redelivered(partition: Mapping[str, Any]) -> bool:
    """Whether a record in flight was delivered again, or is to be."""
    return _most_deliveries(partition) > 1 or _count(partition, AVAILABLE) > 0


def share_order(each: Mapping[str, Any]) -> tuple[Any, ...]:
    """First those with the most deliveries of a record, then those of most lag."""
    place = (each["group"], each["topic"], each["partition"])
    return (-_most_deliveries(each), -(each["lag"] or 0), *place)


def _count(partition: Mapping[str, Any], state: str) -> int:
    """Return how many records in flight have the state."""
    return sum(
        each["last_offset"] - each["first_offset"] + 1 for each in partition["in_flight"] if each["state"] == state
    )


def _most_deliveries(partition: Mapping[str, Any]) -> int:
    return max((each["delivery_count"] for each in partition["in_flight"]), default=0)


def _deliveries(partition: Mapping[str, Any]) -> Text:
    most = _most_deliveries(partition)
    return Text(str(most) if most else UNKNOWN, "yellow" if most > 1 else "")


SHARE_PARTITIONS: Final = (
    Column("group", lambda each: each["group"], 0, is_long=True),
    Column("partition", lambda each: topic_partitions([each]), 1, is_long=True),
    Column("start", lambda each: number_text(each["start_offset"]), 5, is_right=True),
    Column("lag", lambda each: number_text(each["lag"]), 2, is_right=True),
    Column("acquired", lambda each: str(_count(each, ACQUIRED)), 3, is_right=True),
    Column("available", lambda each: str(_count(each, AVAILABLE)), 6, is_right=True),
    Column("deliveries", _deliveries, 4, is_right=True),
)
"""`available` counts the records in flight that will come again; `deliveries` is the most of any of them."""
_OF_ONE_GROUP: Final = SHARE_PARTITIONS[1:]


def _offsets(each: Mapping[str, Any]) -> str:
    first, last = each["first_offset"], each["last_offset"]
    return str(first) if first == last else f"{first} to {last}"


def _lock(each: Mapping[str, Any]) -> str:
    return UNKNOWN if each["lock_left_ms"] is None else age_text(each["lock_left_ms"])


IN_FLIGHT: Final = (
    Column("partition", lambda each: topic_partitions([each]), 3, is_long=True),
    Column("offsets", _offsets, 0, is_right=True),
    Column("state", lambda each: each["state"], 1),
    Column("deliveries", lambda each: str(each["delivery_count"]), 2, is_right=True),
    Column("lock", _lock, 4, is_right=True),
    Column("member", lambda each: each["member"] or UNKNOWN, 5, is_long=True),
)


def share_tables(group: Mapping[str, Any], width: int) -> list[Table]:
    """Return the share partitions of one group and what is in flight, on a terminal of that width."""
    rows = share_rows({"groups": [group]})
    in_flight = [
        {"topic": row["topic"], "partition": row["partition"], **each} for row in rows for each in row["in_flight"]
    ]
    tables = [fitted_table("share partitions", _OF_ONE_GROUP, rows, width, folds=True)]
    if in_flight:
        tables.append(fitted_table("in flight", IN_FLIGHT, in_flight, width, folds=True))
    return tables
