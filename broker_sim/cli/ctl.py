"""`broker-sim ctl`: control and inspect a running cluster.

Every verb of a cluster is a subcommand: its parameters without a default are arguments, the others options. Verbs on
a broker accept several brokers.
"""

from __future__ import annotations

import inspect
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from broker_sim.cli.answers import print_answer
from broker_sim.cli.commands import Commands
from broker_sim.cli.parameters import control_client, control_options, parse_configs, parse_pairs
from broker_sim.cluster.verbs import Verbs
from broker_sim.control.client import ControlError
from broker_sim.control.json_lines import parse_json_lines
from broker_sim.control.verb import verbs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.control.verb import Verb

FAULT_OPTIONS = (
    click.Option(["--broker"], type=int, help="Only requests to this broker."),
    click.Option(["--topic"], help="Only this topic, for APIs that answer by topic or partition."),
    click.Option(["--partition"], type=int, help="Only this partition of the topic."),
    click.Option(["--error"], metavar="NAME", help="Answer with this error, such as NOT_LEADER_OR_FOLLOWER."),
    click.Option(
        ["--lose"],
        type=click.Choice(["request", "response"]),
        help="Close the connection before the broker handles the request, or before it responds.",
    ),
    click.Option(["--delay-ms"], type=click.IntRange(min=0), help="Delay the response by this many milliseconds."),
    click.Option(
        ["--throttle-ms"],
        type=click.IntRange(min=0),
        help="Throttle the client for this many milliseconds, as a quota does.",
    ),
    click.Option(["--hold"], is_flag=True, default=None, help="Hold requests until the fault is healed."),
    click.Option(["--damage"], type=click.Choice(["crc", "cut"]), help="Damage the first fetched batch."),
    click.Option(["--only-counts"], is_flag=True, default=None, help="Only count the requests."),
    click.Option(["--client-id"], help="Only requests of this client."),
    click.Option(["--group"], help="Only requests that name this group."),
    click.Option(["--transactional-id"], help="Only requests that name this transactional id."),
    click.Option(["--skip"], type=click.IntRange(min=0), help="Number of requests to leave alone first [default: 0]."),
    click.Option(["--probability"], type=float, help="Probability of a hit [default: 1]."),
    click.Option(
        ["--count"], type=click.IntRange(min=1), help="Maximum number of requests to hit [default: no limit]."
    ),
)
"""Options for the fields of `Fault`, written out because importing it would take longer than the command."""


FROM_ENVIRONMENT: Final = {"password": "BROKER_SIM_PASSWORD"}
"""Environment variables for secrets, because all users of the machine can read a command's arguments."""
_TYPES: dict[str, type] = {"int": int, "float": float, "str": str, "str | bytes": str}
"""Click's types of parameters, by annotation."""


class _Ctl:
    """The state that subcommands share: the connection and the output format."""

    def __init__(self, url: str | None, token: str | None, as_json: bool) -> None:
        self._url = url
        self._token = token
        self._as_json = as_json

    def ask(self, verb: Verb[..., Any], values: Mapping[str, Any]) -> Any:
        """Send a verb with its arguments by name; return the cluster's response."""
        try:
            return control_client(self._url, self._token).request(*verb.request(values))
        except ControlError as error:
            raise click.ClickException(str(error)) from error

    def show(self, answer: Any, render: Callable[[Any], None]) -> None:
        """Print the response as JSON with --json, otherwise by `render`."""
        if self._as_json:
            click.echo(json.dumps(answer))
        else:
            render(answer)


@click.group("ctl", cls=Commands)
@control_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.pass_context
def command(ctx: click.Context, url: str | None, token: str | None, *, as_json: bool) -> None:
    """Control and inspect a running cluster."""
    ctx.obj = _Ctl(url, token, as_json)


class _VerbCommand(click.Command):
    """The subcommand of one verb."""

    def __init__(self, verb: Verb[..., Any]) -> None:
        self._verb = verb
        self._repeated, self._nullable, parameters = _parameters(verb)
        text = inspect.getdoc(verb.method) or ""
        super().__init__(
            verb.word,
            params=parameters,
            help=text,
            short_help=re.split(r"[;:.](?:\s|$)", text, maxsplit=1)[0].replace("\n", " ") + ".",
            callback=click.pass_obj(self._run),
        )

    def _run(self, ctl: _Ctl, /, **values: Any) -> None:
        nulls = self._take_nulls(values)
        arguments = {name: value for name, value in values.items() if value is not None} | nulls
        several = () if self._repeated is None else arguments.pop(self._repeated)
        for value in several or [None]:
            turn = arguments if value is None else {**arguments, str(self._repeated): value}
            ctl.show(ctl.ask(self._verb, turn), partial(print_answer, self._verb.name, turn))

    def _take_nulls(self, values: dict[str, Any]) -> dict[str, None]:
        """Return the null arguments. Raises UsageError unless each nullable argument is either a value or null."""
        nulls: dict[str, None] = {}
        for name in self._nullable:
            if values.pop(_null_of(name)):
                nulls[name] = None
            if (values[name] is None) is not (name in nulls):
                option = _null_of(name).replace("_", "-")
                raise click.UsageError(f"pass either {name.upper()} or --{option}")
        return nulls


def _null_of(name: str) -> str:
    """Return the name of the flag for a null in place of a required parameter."""
    return f"null_{name}"


def _parameters(verb: Verb[..., Any]) -> tuple[str | None, list[str], list[click.Parameter]]:
    """Return the repeatable parameter, the nullable ones, and all parameters."""
    repeated: str | None = None
    nullable: list[str] = []
    parameters: list[click.Parameter] = []
    for name, parameter in verb.parameters.items():
        kind = verb.annotation(name).removesuffix(" | None")
        required = parameter.default is inspect.Parameter.empty
        option = f"--{name.replace('_', '-')}"
        if kind == "Fault":
            parameters += [click.Argument(["api"]), *FAULT_OPTIONS]
        elif kind == "int" and f"{{{name}}}" in verb.address.path:
            repeated = name
            metavar = "BROKER..." if name == "broker_id" else f"[{name.upper()}...]"
            parameters.append(click.Argument([name], type=int, nargs=-1, required=required, metavar=metavar))
        elif kind == "bool":
            names = f"{option}/--no-{name.replace('_', '-')}" if parameter.default else option
            parameters.append(click.Option([names], is_flag=True, default=None))
        elif kind.startswith("Iterable[Mapping["):
            file = click.File(encoding="utf-8")
            parameters.append(click.Argument([name], type=file, callback=_as_records, metavar="FILE"))
        elif kind.startswith("Mapping[str, "):
            callback = _as_headers if "Iterable[tuple[" in kind else _as_configs
            parameters.append(
                click.Option([option.removesuffix("s"), name], multiple=True, callback=callback, metavar="KEY=VALUE")
            )
        elif kind in _TYPES:
            click_type = _TYPES[kind]
            may_be_null = verb.annotation(name).endswith(" | None")
            if not required:
                parameters.append(click.Option([option], type=click_type))
                continue
            variable = FROM_ENVIRONMENT.get(name)
            parameters.append(click.Argument([name], type=click_type, required=not may_be_null, envvar=variable))
            if may_be_null:
                nullable.append(name)
                flag = f"--null-{name.replace('_', '-')}"
                what = f"Null in place of {name.upper()}, as in a tombstone."
                parameters.append(click.Option([flag, _null_of(name)], is_flag=True, help=what))
    return repeated, nullable, parameters


def _as_configs(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, str] | None:
    return parse_configs(ctx, param, texts) or None


def _as_headers(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> list[tuple[str, str]] | None:
    return parse_pairs(ctx, param, texts, "trace=7") or None


def _as_records(_ctx: click.Context, _param: click.Parameter, file: TextIO) -> list[Any]:
    try:
        with file:
            return parse_json_lines(file)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


for _verb in verbs_of(Verbs).values():
    command.add_command(_VerbCommand(_verb))
