"""The output of `broker-sim ctl` for the result of a verb: a sentence, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROWS_OF_STATUS = 20
"""Maximum number of groups, share partitions, transactions, producers and pushing clients in the output of `status`."""


def print_answer(verb: str, arguments: Mapping[str, Any], answer: Any) -> None:
    """Print the response of the control port to a verb with these arguments."""
    if verb in _TABLES:
        _TABLES[verb](arguments, answer)
    elif verb == "records":
        for record in answer["records"]:
            click.echo(_record_line(record))
    elif isinstance(answer, str):
        click.echo(answer.rstrip())
    else:
        click.echo(_sentence(verb, arguments, answer))


def _sentence(verb: str, arguments: Mapping[str, Any], answer: Any) -> str:
    word = verb.replace("_", "-")
    if verb in _SENTENCES:
        return _SENTENCES[verb](arguments, answer)
    if "broker_id" in arguments:
        return f"{word} broker {answer['id']}: {answer['state']}"
    return f"{word}: done"


def _record_line(record: Mapping[str, Any]) -> str:
    place = f"{record['topic']}-{record['partition']} {record['offset']}"
    texts = [
        "null" if field is None else field if isinstance(field, str) else f"base64 {field['base64']}"
        for field in (record["key"], record["value"])
    ]
    return "\t".join((place, *texts))


def _link_sentence(arguments: Mapping[str, Any], _: Any) -> str:
    delay_ms = arguments.get("delay_ms")
    slower = f"slower by {delay_ms} ms" if delay_ms else "healthy"
    state = "cut" if arguments.get("drop") else slower
    return f"the link from {arguments['source']} to {arguments['target']} is {state}"


def _reset_sentence(arguments: Mapping[str, Any], status: Any) -> str:
    addresses = ",".join(broker["address"] for broker in status["brokers"])
    return f"reset: brokers are at {addresses}" if arguments.get("new_ports") else "reset: done"


def _print_status(_: Any, status: Any) -> None:
    from broker_sim.cli.tables import print_status  # noqa: PLC0415 - brings rich along

    print_status(status)
    _print_listings(status, most=ROWS_OF_STATUS)


def _print_listings(answer: Mapping[str, Any], most: int | None = None) -> None:
    """Print the rows of each of `STATUS_LISTINGS` in a response, at most `most` (default: all)."""
    from broker_sim.cli.columns import fitted_table, output  # noqa: PLC0415 - brings rich along
    from broker_sim.cli.group_tables import STATUS_LISTINGS  # noqa: PLC0415 - as above

    console = output()
    for listing in STATUS_LISTINGS:
        rows = listing.sorted(answer)
        if rows or (most is None and listing.name in answer):
            rows_shown, columns = rows[:most], listing.columns
            console.print(fitted_table(listing.name, columns, rows_shown, console.width, folds=True))
        if most is not None and len(rows) > most:
            click.echo(f"{len(rows) - most} more: broker-sim ctl {listing.verb}")


def _print_purgatory(_: Any, purgatory: Any) -> None:
    from broker_sim.cli.tables import print_purgatory  # noqa: PLC0415 - brings rich along

    print_purgatory(purgatory)


def _print_broker(_: Any, broker: Any) -> None:
    from broker_sim.cli.tables import print_broker  # noqa: PLC0415 - brings rich along

    print_broker(broker)


def _print_partition(arguments: Mapping[str, Any], partition: Any) -> None:
    from broker_sim.cli.tables import print_partition  # noqa: PLC0415 - brings rich along

    print_partition(arguments["topic"], partition)


def _print_group(_: Any, group: Any) -> None:
    from broker_sim.cli.columns import output  # noqa: PLC0415 - brings rich along
    from broker_sim.cli.group_tables import group_tables  # noqa: PLC0415 - as above

    console = output()
    for table in group_tables(group, console.width):
        console.print(table)


def _print_requests(_: Any, answer: Any) -> None:
    from broker_sim.cli.tables import print_requests  # noqa: PLC0415 - brings rich along

    print_requests(answer["requests"])


def _print_clients(_: Any, answer: Any) -> None:
    from broker_sim.cli.tables import print_clients  # noqa: PLC0415 - brings rich along

    print_clients(answer["clients"])


def _print_denials(_: Any, answer: Any) -> None:
    from broker_sim.cli.tables import print_denials  # noqa: PLC0415 - brings rich along

    print_denials(answer["denials"])


def _print_client_metrics(_: Any, answer: Any) -> None:
    if not answer["clients"]:
        click.echo("no client has pushed metrics; clients push what a CLIENT_METRICS configuration lists")
    for client in answer["clients"]:
        click.echo(f"{client['client_id']} ({client['software']}): {client['pushes']} pushes")
        for metric in client["metrics"]:
            attributes = ",".join(f"{name}={value}" for name, value in metric["attributes"].items())
            click.echo(f"\t{metric['name']}{f'{{{attributes}}}' if attributes else ''}\t{metric['value']:g}")


_TABLES: dict[str, Callable[[Mapping[str, Any], Any], None]] = {
    "status": _print_status,
    "purgatory": _print_purgatory,
    "broker": _print_broker,
    "partition": _print_partition,
    "wait_for_isr": _print_partition,
    "groups": lambda _, answer: _print_listings(answer),
    "transactions": lambda _, answer: _print_listings(answer),
    "producers": lambda _, answer: _print_listings(answer),
    "requests": _print_requests,
    "clients": _print_clients,
    "denials": _print_denials,
    "client_metrics": _print_client_metrics,
    "group": _print_group,
    "wait_for_group": _print_group,
}
_SENTENCES: dict[str, Callable[[Mapping[str, Any], Any], str]] = {
    "set_link": _link_sentence,
    "inject": lambda _, fault: f"fault {fault['id']} hits {fault['api']}",
    "reset": _reset_sentence,
    "heal": lambda _, status: f"{len(status['faults'])} faults left",
    "create_topic": lambda _, topic: f"topic {topic['name']} exists",
    "add_broker": lambda _, broker: f"broker {broker['id']} is at {broker['address']}",
    "remove_broker": lambda arguments, _: f"broker {arguments['broker_id']} removed",
    "produce_many": lambda arguments, answer: f"{arguments['topic']} got {len(answer['records'])} records",
    "produce": lambda _, record: f"appended to {record['topic']}-{record['partition']} at offset {record['offset']}",
}
