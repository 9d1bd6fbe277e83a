"""Groups, transactions and producers as tables, for `broker-sim ctl` and `top`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cli.tables import new_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

__all__ = ["group_tables", "groups_table", "transactions_table"]

STABLE = "Stable"
UNKNOWN = "-"


def groups_table(groups: Sequence[dict[str, Any]]) -> Table:
    """Return a line for each group."""
    right = ("coordinator", "members", "lag")
    table = new_table("groups", "group", "type", "state", *right, right=right)
    for group in groups:
        state = group["state"]
        table.add_row(
            group["id"],
            group["type"],
            state if state == STABLE else f"[yellow]{state}[/]",
            str(group["coordinator"]),
            str(len(group["members"])),
            str(group["lag"]),
        )
    return table


def group_tables(group: dict[str, Any]) -> list[Table]:
    """Return all that is known of one group."""
    members = new_table("members", "member", "client", "host", "assignment")
    for member in group["members"]:
        assignment = ", ".join(
            f"{each['topic']}-{each['partition']}" for each in member["assignment"]
        )
        members.add_row(
            member["instance_id"] or member["id"],
            member["client_id"],
            member["client_host"],
            assignment,
        )
    right = ("committed", "high watermark", "lag")
    offsets = new_table("offsets", "topic", *right, right=right)
    for offset in group["offsets"]:
        numbers = (offset["committed_offset"], offset["high_watermark"], offset["lag"])
        offsets.add_row(
            f"{offset['topic']}-{offset['partition']}",
            *(UNKNOWN if number is None else str(number) for number in numbers),
        )
    return [groups_table([group]), members, offsets]


def transactions_table(transactions: Sequence[dict[str, Any]]) -> Table:
    """Return a line for each transactional id."""
    right = ("coordinator", "producer", "epoch")
    table = new_table("transactions", "transaction", "state", *right, "partitions", right=right)
    for each in transactions:
        table.add_row(
            each["transactional_id"],
            each["state"],
            str(each["coordinator"]),
            str(each["producer_id"]),
            str(each["producer_epoch"]),
            ", ".join(f"{one['topic']}-{one['partition']}" for one in each["partitions"]),
        )
    return table
