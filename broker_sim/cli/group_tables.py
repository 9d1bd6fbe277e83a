"""Groups, share partitions, transactions, producers and clients' metrics as tables, for `broker-sim ctl` and `top`.

Of many rows only the first are shown, so rows that wait or hang come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.text import Text

from broker_sim.cli.columns import UNKNOWN, Column, age_text, fitted_table, number_text, topic_partitions
from broker_sim.cli.tables import new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.table import Table

ACQUIRED: Final = "Acquired"
AVAILABLE: Final = "Available"


def share_rows(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the share partitions of the groups in a response, each with the id of its group."""
    return [
        {"group": group["id"], **partition}
        for group in answer.get("groups") or []
        for partition in group["share_partitions"]
    ]


def is_redelivered(partition: Mapping[str, Any]) -> bool:
    """Whether a record in flight was or will be delivered again."""
    return _most_deliveries(partition) > 1 or _count(partition, AVAILABLE) > 0


def share_order(each: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a share partition: most deliveries of a record first, then largest lag."""
    place = (each["group"], each["topic"], each["partition"])
    return (-_most_deliveries(each), -(each["lag"] or 0), *place)


def _count(partition: Mapping[str, Any], state: str) -> int:
    """Return the number of records in flight with that state."""
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
"""Columns; `available` counts records to be redelivered, `deliveries` is the maximum over the records."""
_OF_ONE_GROUP: Final = SHARE_PARTITIONS[1:]


def _offset_range(each: Mapping[str, Any]) -> str:
    first, last = each["first_offset"], each["last_offset"]
    return str(first) if first == last else f"{first} to {last}"


def _lock(each: Mapping[str, Any]) -> str:
    return UNKNOWN if each["lock_left_ms"] is None else age_text(each["lock_left_ms"])


IN_FLIGHT: Final = (
    Column("partition", lambda each: topic_partitions([each]), 3, is_long=True),
    Column("offsets", _offset_range, 0, is_right=True),
    Column("state", lambda each: each["state"], 1),
    Column("deliveries", lambda each: str(each["delivery_count"]), 2, is_right=True),
    Column("lock", _lock, 4, is_right=True),
    Column("member", lambda each: each["member"] or UNKNOWN, 5, is_long=True),
)


def share_tables(group: Mapping[str, Any], width: int) -> list[Table]:
    """Return tables of one group's share partitions and records in flight, for a terminal of that width."""
    rows = share_rows({"groups": [group]})
    in_flight = [
        {"topic": row["topic"], "partition": row["partition"], **each} for row in rows for each in row["in_flight"]
    ]
    tables = [fitted_table("share partitions", _OF_ONE_GROUP, rows, width, folds=True)]
    if in_flight:
        tables.append(fitted_table("in flight", IN_FLIGHT, in_flight, width, folds=True))
    return tables


QUIET: Final = {"Stable", "Empty", "Dead"}
SHARE: Final = "share"


class Listing(NamedTuple):
    """A table of one kind of rows in a response of the control port."""

    name: str
    verb: str
    """The verb of the response: `GET /VERB`, `broker-sim ctl VERB`."""
    rows: Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]
    """Returns the rows of a response."""
    columns: tuple[Column, ...]
    waits: Callable[[Mapping[str, Any]], bool]
    """Returns whether a row waits for something; its table then has precedence."""
    order: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    """Returns the sort key of a row."""

    def sorted(self, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the rows of a response in their order."""
        return sorted(self.rows(answer), key=self.order)


def _rows_of(name: str) -> Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return a function that returns the rows in that field of a response, [] if it is absent."""
    return lambda answer: answer.get(name) or []


# -- groups ---------------------------------------------------------------------------------------


def _is_rebalancing(group: Mapping[str, Any]) -> bool:
    return group["state"] not in QUIET


def _group_order(group: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a group: rebalancing groups first, then largest lag."""
    return (not _is_rebalancing(group), -group["lag"], group["id"])


def _group_state(group: Mapping[str, Any]) -> Text:
    return Text(group["state"], "" if group["state"] == "Stable" else "yellow")


_GROUPS: Final = (
    Column("group", lambda group: group["id"], 0, is_long=True),
    Column("type", lambda group: group["type"], 5),
    Column("state", _group_state, 1),
    Column("coordinator", lambda group: str(group["coordinator"]), 4, is_right=True),
    Column("members", lambda group: str(len(group["members"])), 3, is_right=True),
    Column("lag", lambda group: str(group["lag"]), 2, is_right=True),
)


def group_tables(group: dict[str, Any], width: int) -> list[Table]:
    """Return the tables of one group, for a terminal of that width."""
    head = fitted_table("groups", _GROUPS, [group], width, folds=True)
    last = share_tables(group, width) if group["type"] == SHARE else [_offsets(group)]
    return [head, _members(group), *last]


def _members(group: Mapping[str, Any]) -> Table:
    members = new_table("members", "member", "client", "host", "assignment")
    for member in group["members"]:
        members.add_row(
            member["instance_id"] or member["id"],
            member["client_id"],
            member["client_host"],
            topic_partitions(member["assignment"]),
        )
    return members


def _offsets(group: Mapping[str, Any]) -> Table:
    right = ("committed", "high watermark", "lag")
    offsets = new_table("offsets", "topic", *right, right=right)
    for offset in group["offsets"]:
        numbers = (offset["committed_offset"], offset["high_watermark"], offset["lag"])
        offsets.add_row(topic_partitions([offset]), *map(number_text, numbers))
    return offsets


# -- transactions ---------------------------------------------------------------------------------


def _is_open(transaction: Mapping[str, Any]) -> bool:
    return transaction["age_ms"] is not None


def _is_under_way(transaction: Mapping[str, Any]) -> bool:
    return _is_open(transaction) or transaction["pending_state"] is not None


def _transaction_order(each: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a transaction: pending writes and markers first, then oldest."""
    waits = each["pending_state"] is not None or (_is_open(each) and each["state"] != "Ongoing")
    return (not waits, not _is_open(each), -(each["age_ms"] or 0), each["transactional_id"])


def _transaction_state(transaction: Mapping[str, Any]) -> Text:
    """Return the state, or an arrow and the pending state."""
    pending = transaction["pending_state"]
    if pending is not None:
        return Text(f"→ {pending}", "red")
    return Text(transaction["state"], "yellow" if transaction["state"].startswith("Prep") else "")


def _age(transaction: Mapping[str, Any]) -> str:
    return age_text(transaction["age_ms"]) if _is_open(transaction) else UNKNOWN


def _producer(row: Mapping[str, Any]) -> str:
    return f"{row['producer_id']}/{row['producer_epoch']}"


_TRANSACTIONS: Final = (
    Column("transaction", lambda each: each["transactional_id"], 0, is_long=True),
    Column("state", _transaction_state, 1),
    Column("age", _age, 2, is_right=True),
    Column("producer", _producer, 4, is_right=True),
    Column("coordinator", lambda each: str(each["coordinator"]), 5, is_right=True),
    Column("partitions", lambda each: topic_partitions(each["partitions"]), 3, is_long=True),
)  # fmt: skip


# -- producers ------------------------------------------------------------------------------------


def _is_in_transaction(producer: Mapping[str, Any]) -> bool:
    return producer["transaction_start_offset"] is not None


def _producer_order(each: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a producer: hanging transactions, then open ones, then by partition."""
    place = (each["topic"], each["partition"], each["producer_id"])
    return (not each["is_hanging"], not _is_in_transaction(each), *place)


def _open_from(producer: Mapping[str, Any]) -> str | Text:
    offset = producer["transaction_start_offset"]
    if producer["is_hanging"]:
        return Text(f"{offset} hangs", "red")
    return UNKNOWN if offset is None else str(offset)


_PRODUCERS: Final = (
    Column("partition", lambda each: topic_partitions([each]), 0, is_long=True),
    Column("producer", _producer, 1, is_right=True),
    Column("sequence", lambda each: str(each["last_sequence"]), 4, is_right=True),
    Column("open from", _open_from, 2, is_right=True),
    Column("transaction", lambda each: each["transactional_id"] or UNKNOWN, 3, is_long=True),
)

LISTINGS: Final = (
    Listing("groups", "groups", _rows_of("groups"), _GROUPS, _is_rebalancing, _group_order),
    Listing("share partitions", "groups", share_rows, SHARE_PARTITIONS, is_redelivered, share_order),
    Listing("transactions", "transactions", _rows_of("transactions"), _TRANSACTIONS, _is_under_way, _transaction_order),
    Listing("producers", "producers", _rows_of("producers"), _PRODUCERS, _is_in_transaction, _producer_order),
)
"""The tables of `broker-sim top`."""

# -- clients that push metrics ----------------------------------------------------------------------


def _pushing_clients(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of clients that have pushed metrics, the most recent one first."""
    return (answer.get("client_metrics") or [])[::-1]


_CLIENT_METRICS: Final = (
    Column("client", lambda each: each["client_id"] or UNKNOWN, 0, is_long=True),
    Column("software", lambda each: each["software"], 3, is_long=True),
    Column("pushes", lambda each: str(each["pushes"]), 1, is_right=True),
    Column("metrics", lambda each: str(len(each["metrics"])), 2, is_right=True),
)

STATUS_LISTINGS: Final = (
    *LISTINGS,
    Listing("client metrics", "client-metrics", _pushing_clients, _CLIENT_METRICS, lambda _: False, lambda _: ()),
)
"""The tables of `broker-sim ctl status`."""
