"""``broker-sim ctl``: steer a cluster that runs, and look into it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from broker_sim.cli.parameters import TopicText, parse_topics
from broker_sim.control.client import ControlClient, ControlError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["command"]

VERBS = {
    "pause": "Stop brokers where they are, as SIGSTOP does.",
    "resume": "Let paused brokers continue, as SIGCONT does.",
    "kill": "End brokers without a word, as SIGKILL does; their logs stay.",
    "start": "Start killed brokers again, on their ports and logs.",
    "disconnect": "Cut brokers off from the other nodes; clients still reach them.",
    "reconnect": "Undo disconnect.",
    "disconnect-clients": "Cut brokers off from their clients; the other nodes still reach them.",
    "reconnect-clients": "Undo disconnect-clients.",
}


class _Ctl:
    """What the subcommands share: the connection, and the form of what they print."""

    def __init__(self, url: str, as_json: bool) -> None:
        self._url = url
        self._as_json = as_json

    def get(self, path: str) -> Any:
        return self._ask(lambda client: client.get(path))

    def post(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        return self._ask(lambda client: client.post(path, body))

    def delete(self, path: str) -> Any:
        return self._ask(lambda client: client.delete(path))

    def _ask(self, ask: Callable[[ControlClient], Any]) -> Any:
        try:
            return ask(ControlClient(self._url))
        except ControlError as error:
            raise click.ClickException(str(error)) from error

    def show(self, answer: Any, render: Callable[[Any], None]) -> None:
        """Print the answer as JSON if that was asked for, else by ``render``."""
        if self._as_json:
            click.echo(json.dumps(answer))
        else:
            render(answer)


@click.group("ctl")
@click.option(
    "--control",
    "url",
    envvar="BROKER_SIM_CONTROL",
    required=True,
    metavar="URL",
    help='What `broker-sim run` has printed as "control"; or set BROKER_SIM_CONTROL.',
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables.")
@click.pass_context
def command(ctx: click.Context, url: str, *, as_json: bool) -> None:
    """Pause, kill, cut off, inspect: steer a cluster that runs."""
    ctx.obj = _Ctl(url, as_json)


def _add_verb(verb: str, text: str) -> None:
    @command.command(verb, help=text)
    @click.argument("brokers", type=int, nargs=-1, required=True, metavar="BROKER...")
    @click.pass_obj
    def run(ctl: _Ctl, brokers: Sequence[int]) -> None:
        for broker_id in brokers:
            answer = ctl.post(f"/brokers/{broker_id}/{verb}")
            ctl.show(answer, lambda row: click.echo(f"{verb} broker {row['id']}: {row['state']}"))


for _verb, _text in VERBS.items():
    _add_verb(_verb, _text)


@command.command()
@click.argument("source", type=int)
@click.argument("target", type=int)
@click.option("--drop", is_flag=True, help="Hold back everything until the link is mended.")
@click.option("--delay-ms", type=click.IntRange(min=0), default=0, help="Deliver that much later.")
@click.pass_obj
def link(ctl: _Ctl, source: int, target: int, delay_ms: int, *, drop: bool) -> None:
    """Cut or slow the link from broker SOURCE to TARGET; without options mend it."""
    fault = {"from": source, "to": target, "drop": drop, "delay_ms": delay_ms}
    answer = ctl.post("/links", fault)
    state = "cut" if drop else f"slower by {delay_ms} ms" if delay_ms else "whole"
    ctl.show(answer, lambda _: click.echo(f"the link from {source} to {target} is {state}"))


@command.command()
@click.argument("api")
@click.option("--broker", type=int, help="Only at this broker.")
@click.option("--topic", help="Only requests about this topic: Produce, Fetch, ListOffsets.")
@click.option("--partition", type=int, help="Only this partition of the topic.")
@click.option("--error", metavar="NAME", help="Answer this error, such as NOT_LEADER_OR_FOLLOWER.")
@click.option(
    "--lose",
    type=click.Choice(["request", "response"]),
    help="Break the connection before the broker does anything, or before it answers.",
)
@click.option("--delay-ms", type=click.IntRange(min=0), help="Answer that much later.")
@click.option("--count", type=click.IntRange(min=1), help="Hit so many requests; all if not given.")
@click.pass_obj
def inject(ctl: _Ctl, /, **fault: object) -> None:
    """Let clients' requests of an API, such as Produce, fail or wait. `heal` ends it."""
    answer = ctl.post("/inject", {key: value for key, value in fault.items() if value is not None})
    ctl.show(answer, lambda made: click.echo(f"fault {made['id']} hits {made['api']}"))


@command.command()
@click.argument("faults", type=int, nargs=-1)
@click.pass_obj
def heal(ctl: _Ctl, faults: Sequence[int]) -> None:
    """End the injected FAULTS of these numbers, or all."""
    for path in [f"/inject/{number}" for number in faults] or ["/inject"]:
        answer = ctl.delete(path)
        ctl.show(answer, lambda left: click.echo(f"{len(left['faults'])} faults left"))


@command.command()
@click.argument("topics", nargs=-1, required=True, callback=parse_topics)
@click.pass_obj
def topic(ctl: _Ctl, topics: Sequence[TopicText]) -> None:
    """Create TOPICS, each as NAME:PARTITIONS:RF:KEY=VALUE; all but the name may be left out."""
    for wanted in topics:
        answer = ctl.post("/topics", wanted._asdict())
        ctl.show(answer, lambda made: click.echo(f"topic {made['name']} exists"))


@command.command()
@click.pass_obj
def status(ctl: _Ctl) -> None:
    """Show brokers, links with faults, and partitions with leader, ISR, HW and LEO."""
    from broker_sim.cli.tables import print_status  # noqa: PLC0415 - brings rich along

    ctl.show(ctl.get("/status"), print_status)


@command.command()
@click.pass_obj
def purgatory(ctl: _Ctl) -> None:
    """Show what is parked where: keys, age, time left, wheel level and bucket."""
    from broker_sim.cli.tables import print_purgatory  # noqa: PLC0415 - brings rich along

    ctl.show(ctl.get("/purgatory"), print_purgatory)
