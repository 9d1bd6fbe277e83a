"""Options that commands share: parsers of values, and the address of the cluster."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING, TypeVar

import click

from broker_sim.control.client import CONTROL_VARIABLE, TOKEN_VARIABLE, ControlClient
from broker_sim.runtime.memory import parse_memory_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

USERS_VARIABLE = "BROKER_SIM_USERS"
Command = TypeVar("Command", bound="Callable[..., object]")


class WithCommand(click.Command):
    """A command whose parameter `words` has the words after `--`; None without `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before `--`. Raises UsageError for a command without `--`."""
        at = args.index("--") if "--" in args else len(args)
        ctx.allow_extra_args = at == len(args)
        rest = super().parse_args(ctx, args[:at])
        if ctx.allow_extra_args and rest:
            first = [ctx.params[each.name] for each in self.params if isinstance(each, click.Argument) and each.name]
            raise click.UsageError(f"a command is written after --, as `-- {shlex.join([*first, *rest])}`", ctx)
        ctx.params["words"] = tuple(args[at + 1 :]) if at < len(args) else None
        return rest


def check_command(
    words: Sequence[str], missing: type[click.ClickException] = click.UsageError, *, in_virtual_time: bool = False
) -> None:
    """Raise UsageError if there are no words after `--`, and `missing` if the first word is not a command.

    In virtual time `python` stands for the Python that runs this process.
    """
    if not words:
        raise click.UsageError("Missing argument 'COMMAND...' after --")
    if not (in_virtual_time and words[0] == "python") and shutil.which(words[0]) is None:
        raise missing(f"{words[0]}: command not found")


def control_options(command: Command) -> Command:
    """Add the options for the address of the control port: parameters `url` and `token`."""
    for option in (
        click.option(
            "--token",
            envvar=TOKEN_VARIABLE,
            metavar="TOKEN",
            help=f"The --control-token of `broker-sim run`; or set {TOKEN_VARIABLE}.",
        ),
        # Not a required option: click would require it for `ctl SUBCOMMAND --help` too.
        click.option(
            "--control",
            "url",
            envvar=CONTROL_VARIABLE,
            metavar="URL",
            help=f'The address that `broker-sim run` printed as "control"; or set {CONTROL_VARIABLE}.',
        ),
    ):
        command = option(command)
    return command


def control_client(url: str | None, token: str | None) -> ControlClient:
    """Return a client of the control port. Raises UsageError without an address, ControlError for an invalid one."""
    if not url:
        raise click.UsageError(
            f"no cluster address; pass --control URL or set {CONTROL_VARIABLE} to the address that `broker-sim run` "
            'prints as "control"',
            click.get_current_context(),
        )
    return ControlClient(url, token)


def check_topics(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> Sequence[str]:
    """Return the topics unchanged if they are valid. A callback of click's options."""
    from broker_sim.cluster.text_forms import parse_topic  # noqa: PLC0415 - `ctl` needs no cluster

    for text in texts:
        try:
            parse_topic(text)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
    return texts


def parse_configs(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Return the configurations by key. A callback of click's options."""
    return dict(parse_pairs(ctx, param, texts, "log.retention.ms=60000"))


def parse_pairs(
    ctx: click.Context, param: click.Parameter, texts: Sequence[str], example: str
) -> list[tuple[str, str]]:
    """Return names and values in their order; names may repeat. The error has the example."""
    pairs = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE, for example {example}", ctx, param)
        pairs.append((key, value))
    return pairs


def parse_broker_configs(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[int, dict[str, str]]:
    """Return the configurations of single brokers by id and key. A callback of click's options."""
    configs: dict[int, dict[str, str]] = {}
    for text in texts:
        broker_id, colon, setting = text.partition(":")
        key, equals, value = setting.partition("=")
        if not broker_id.isdecimal() or not colon or not key or not equals:
            raise click.BadParameter(f"{text!r} is not BROKER:KEY=VALUE, for example 1:broker.rack=a", ctx, param)
        configs.setdefault(int(broker_id), {})[key] = value
    return configs


def parse_features(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, int]:
    """Return the levels of features by name. A callback of click's options."""
    features = {}
    for text in texts:
        name, equals, level = text.partition("=")
        if not name or not equals or not level.isdecimal():
            raise click.BadParameter(f"{text!r} is not NAME=LEVEL, for example metadata.version=19", ctx, param)
        features[name] = int(level)
    return features


def parse_users(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, str] | None:
    """Return passwords by name, None without users; errors contain no password. A callback of click's options."""
    users = {}
    for text in texts:
        user, equals, password = text.partition("=")
        if not user or not equals or not password:
            raise click.BadParameter("a user is NAME=PASSWORD, for example billing=secret", ctx, param)
        users[user] = password
    return users or None


def parse_memory(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return the bytes of a size such as `512MB`. A callback of click's options."""
    if text is None:
        return None
    try:
        return parse_memory_limit(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None
