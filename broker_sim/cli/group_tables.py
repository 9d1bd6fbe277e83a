"""Groups, share partitions, transactions and producers as tables, for `broker-sim ctl` and `top`.

Of many rows only the first ones are shown, so those that wait or hang come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.text import Text

from broker_sim.cli.columns import UNKNOWN, Column, age_text, fitted_table, number_text, topic_partitions
from broker_sim.cli.share_tables import SHARE_PARTITIONS, is_redelivered, share_order, share_rows, share_tables
from broker_sim.cli.tables import new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.table import Table

QUIET: Final = {"Stable", "Empty", "Dead"}
SHARE: Final = "share"


class Listing(NamedTuple):
    """A table of one kind of rows, which are in an answer of the control port."""

    name: str
    verb: str
    """Whose answer it is: `GET /VERB`, `broker-sim ctl VERB`."""
    rows: Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]
    """Takes the rows from the answer."""
    columns: tuple[Column, ...]
    waits: Callable[[Mapping[str, Any]], bool]
    """Whether a row waits for something, so that the table matters more than one where none does."""
    order: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    """Gives the key of a row by which all are sorted."""

    def sorted(self, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the rows of an answer, the most interesting ones first."""
        return sorted(self.rows(answer), key=self.order)


def _rows_of(name: str) -> Callable[[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return what takes the field of that name from an answer; it may be absent."""
    return lambda answer: answer.get(name) or []


# -- groups ---------------------------------------------------------------------------------------


def _is_rebalancing(group: Mapping[str, Any]) -> bool:
    return group["state"] not in QUIET


def _group_order(group: Mapping[str, Any]) -> tuple[Any, ...]:
    """First those that rebalance, then those of most lag."""
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
    """Return all that is known of one group, on a terminal of that width."""
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
    """First those whose state cannot be written or that wait for markers, then the oldest open ones."""
    waits = each["pending_state"] is not None or (_is_open(each) and each["state"] != "Ongoing")
    return (not waits, not _is_open(each), -(each["age_ms"] or 0), each["transactional_id"])


def _transaction_state(transaction: Mapping[str, Any]) -> Text:
    """Return the state, or the one that is being written, after an arrow."""
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
    """Those that hang, then those with an open transaction, then the others by partition."""
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
