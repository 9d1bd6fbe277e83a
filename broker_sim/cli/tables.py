"""Tables for responses to `broker-sim ctl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cli.columns import empty_table, output
from broker_sim.metadata import NO_LEADER
from broker_sim.metadata.topic_name import is_internal_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

KILOBYTE = 1024
TEN = 10
STATE_STYLES = {"running": "green", "paused": "yellow", "dead": "red"}

LONG = ("address", "api", "assignment", "client", "effect", "errors", "end offsets", "host", "ISR", "keys",
        "member", "operation", "principal", "resource", "rule", "topic", "waits for", "where")  # fmt: skip
"""Columns that are folded into several lines in a narrow terminal."""


def new_table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns in `right` are right-aligned."""
    table = empty_table(title)
    for column in columns:
        table.add_column(
            column, justify="right" if column in right else "left", no_wrap=column not in LONG, overflow="fold"
        )
    return table


def print_status(status: dict[str, Any]) -> None:
    """Print the memory, brokers, partitions, faults, and links with faults.

    Partitions of Kafka's internal topics that are empty and in sync, usually 49 of 50, are only counted.
    """
    console = output()
    memory = status["memory"]
    console.print(f"memory: {_size(memory['used_bytes'])} of at most {_size(memory['limit_bytes'])}\n")
    console.print(_brokers(status["brokers"]))
    topics = [_without_idle_partitions(topic) for topic in status["topics"]]
    console.print(_partitions(topics))
    for topic, shown in zip(status["topics"], topics, strict=True):
        if count := len(topic["partitions"]) - len(shown["partitions"]):
            console.print(f"{count} empty partitions of {topic['name']} are not shown; --json shows them")
    if status["faults"]:
        console.print(_faults(status["faults"]))
    if status["links"]:
        links = new_table("links with faults", "from", "to", "drop", "delay")
        for link in status["links"]:
            links.add_row(_node(link["from"]), _node(link["to"]), str(link["drop"]), f"{link['delay_ms']} ms")
        console.print(links)
    if status["metadata_delay_ms"]:
        console.print(f"new metadata is up to {status['metadata_delay_ms']} ms late")


def _print_tables(tables: Iterable[Table]) -> None:
    """Print tables, one below the other."""
    console = output()
    for table in tables:
        console.print(table)


def print_broker(broker: dict[str, Any]) -> None:
    """Print one broker."""
    _print_tables([_brokers([broker])])


def print_partition(topic: str, partition: dict[str, Any]) -> None:
    """Print one partition of a topic."""
    _print_tables([_partitions([{"name": topic, "partitions": [partition]}])])


def print_requests(requests: list[dict[str, Any]]) -> None:
    """Print a line for each request, with the time since the first one."""
    right = ("at", "broker", "version", "took")
    table = new_table("requests", "at", "client", "broker", "api", "version", "took", "errors", right=right)
    for request in requests:
        elapsed_ms = request["elapsed_ms"]
        table.add_row(
            f"{request['received_ms'] - requests[0]['received_ms']} ms",
            request["client_id"] or "",
            str(request["broker"]),
            request["api"],
            str(request["api_version"]),
            "no answer" if elapsed_ms is None else f"{elapsed_ms} ms",
            ", ".join(request["errors"]),
        )
    _print_tables([table])


def print_clients(clients: list[dict[str, Any]]) -> None:
    """Print a line for each connection of a client."""
    table = new_table("clients", "client", "address", "broker", "listener", "last request", right=("broker",))
    for client in clients:
        row = (client["client_id"], client["address"], str(client["broker"]), client["listener"], client["api"])
        table.add_row(*(text or "" for text in row))
    _print_tables([table])


def print_denials(denials: list[dict[str, Any]]) -> None:
    """Print a line for each denial, with the time since the first one."""
    columns = ("principal", "host", "api", "operation", "resource", "rule")
    table = new_table("denials", "at", *columns, right=("at",))
    for denial in denials:
        table.add_row(
            f"{denial['time_ms'] - denials[0]['time_ms']} ms",
            denial["principal"],
            denial["client_host"],
            denial["api"],
            denial["operation"],
            f"{denial['resource_type']}:{denial['resource']}",
            denial["rule"],
        )
    _print_tables([table])


def _brokers(brokers: list[dict[str, Any]]) -> Table:
    table = new_table("brokers", "id", "address", "state", "fenced", "clients cut off")
    for broker in brokers:
        state = broker["state"]
        table.add_row(
            str(broker["id"]),
            _addresses(broker),
            f"[{STATE_STYLES[state]}]{state}[/]",
            "[red]yes[/]" if broker["fenced"] else "no",
            "[red]yes[/]" if broker["clients_cut_off"] else "no",
        )
    return table


def _addresses(broker: dict[str, Any]) -> str:
    """Return the address of a broker, or one line for each of several listeners."""
    listeners = broker["listeners"]
    if len(listeners) == 1:
        return str(broker["address"])
    return "\n".join(f"{name} {address}" for name, address in listeners.items())


def _size(size_bytes: int) -> str:
    """Return a size as `--memory-limit` reads it, rounded."""
    size, units = float(size_bytes), ["bytes", "KB", "MB", "GB", "TB"]
    while size >= KILOBYTE and len(units) > 1:
        size /= KILOBYTE
        units.pop(0)
    digits = 1 if size % 1 and size < TEN else 0
    return f"{size:.{digits}f} {units[0]}"


def _faults(faults: list[dict[str, Any]]) -> Table:
    table = new_table("injected faults", "id", "api", "where", "effect", "count", "hits")
    for fault in faults:
        table.add_row(
            str(fault["id"]),
            fault["api"],
            _fault_place(fault),
            _fault_effect(fault),
            "" if fault["count"] is None else str(fault["count"]),
            str(fault["hits"]),
        )
    return table


def _fault_place(fault: dict[str, Any]) -> str:
    place = [] if fault["broker"] is None else [f"broker {fault['broker']}"]
    if fault["topic"] is not None:
        number = "" if fault["partition"] is None else f"-{fault['partition']}"
        place.append(f"{fault['topic']}{number}")
    place += [
        f"{field.replace('_', ' ')} {fault[field]}"
        for field in ("client_id", "group", "transactional_id")
        if fault.get(field) is not None
    ]
    return ", ".join(place) or "everywhere"


def _fault_effect(fault: dict[str, Any]) -> str:
    effects = [f"hook {fault['hook']}"] if fault["hook"] else []
    if fault["error"]:
        effects.append(fault["error"])
    if fault["lose"]:
        effects.append(f"lose {fault['lose']}")
    if fault["delay_ms"]:
        effects.append(f"delay {fault['delay_ms']} ms")
    if fault["throttle_ms"]:
        effects.append(f"throttle {fault['throttle_ms']} ms")
    if fault.get("hold"):
        effects.append(f"hold, {fault['held']} wait")
    if fault.get("damage"):
        effects.append(f"damage {fault['damage']}")
    if fault.get("only_counts"):
        effects.append("count")
    return ", ".join(effects)


def _partitions(topics: list[dict[str, Any]]) -> Table:
    table = new_table("partitions", "topic", "leader", "epoch", "ISR", "HW", "end offsets")
    for topic in topics:
        for partition in topic["partitions"]:
            replicas = partition["replicas"]
            leader = next((r for r in replicas if r["broker"] == partition["leader"]), None)
            table.add_row(
                f"{topic['name']}-{partition['partition']}",
                "[red]none[/]" if partition["leader"] == NO_LEADER else str(partition["leader"]),
                str(partition["leader_epoch"]),
                ", ".join(map(str, partition["isr"])),
                "?" if leader is None else str(leader["high_watermark"]),
                ", ".join(f"{r['broker']}: {r['log_end_offset']}" for r in replicas),
            )
    return table


def _without_idle_partitions(topic: dict[str, Any]) -> dict[str, Any]:
    """Return an internal topic without the partitions that are empty and in sync, any other topic as it is."""
    if not is_internal_topic(topic["name"]):
        return topic
    return {**topic, "partitions": [each for each in topic["partitions"] if not _is_idle(each)]}


def _is_idle(partition: dict[str, Any]) -> bool:
    replicas = partition["replicas"]
    return len(partition["isr"]) == len(replicas) and not any(replica["log_end_offset"] for replica in replicas)


def _node(node_id: int) -> str:
    return "controller" if node_id < 0 else str(node_id)


def print_purgatory(purgatory: dict[str, Any]) -> None:
    """Print the sizes of the purgatories that hold something, then all parked operations by deadline.

    The column `wheel` has level and bucket.
    """
    console = output()
    sizes = new_table("purgatories", "broker", "purgatory", "watched", "delayed", right=("watched", "delayed"))
    parked = new_table(
        *("parked", "broker", "operation", "keys", "waits for", "age", "left", "wheel"), right=("age", "left")
    )
    rows = []
    for broker in purgatory["brokers"]:
        for one in broker["purgatories"]:
            if one["watched"] or one["num_delayed"]:
                sizes.add_row(str(broker["id"]), one["name"], str(one["watched"]), str(one["num_delayed"]))
            rows += [(operation["time_left_ms"], broker["id"], operation) for operation in one["parked"]]
    for _, broker_id, operation in sorted(rows, key=lambda row: row[:2]):
        parked.add_row(
            str(broker_id),
            f"{operation['operation']} {operation['operation_id']}",
            ", ".join(operation["keys"]),
            operation["waits_for"],
            f"{operation['age_ms']} ms",
            f"{operation['time_left_ms']} ms",
            f"{operation['wheel_level']}/{operation['wheel_bucket']}",
        )
    console.print(sizes)
    console.print(parked)
