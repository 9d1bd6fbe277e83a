"""Options of chaos searches, one for each field of `Settings`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from broker_sim.chaos.settings import Form, Setting, settings_by_name
from broker_sim.cli.parameters import check_topics, parse_configs, parse_users
from broker_sim.runtime.virtual.loop import DAY_S, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Command = TypeVar("Command", bound="Callable[..., object]")


def settings_options(command: Command) -> Command:
    """Add the options, as parameters named like the fields, for `read_settings`; None for each unused option."""
    for name, setting in reversed(settings_by_name().items()):
        for option in _options(name, setting):
            command = option(command)
    return command


def read_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the options that were used, with the text of the schedule's file.

    `--schedule <(...)` can be read only once: call it after `pin_hash_seed`, which may restart the program.
    """
    settings = {name: value for name, value in options.items() if value is not None}
    if "schedule" in settings:
        settings["schedule"] = settings["schedule"].read_text()
    return settings


def _options(name: str, setting: Setting) -> list[Callable[[Command], Command]]:
    if setting.form != "exhaustive":
        return [click.option(setting.option, name, help=setting.help, **_FORMS[setting.form])]
    return [
        click.option(
            f"{setting.option}-brokers",
            name,
            flag_value="brokers",
            help="The same for the orders in which messages of several brokers reach a broker.",
        ),
        click.option(setting.option, name, flag_value="workers", help=setting.help),
    ]


def _kinds(_ctx: click.Context, _param: click.Parameter, text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")


def _or_none(parse: Callable[..., Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    return lambda ctx, param, texts: parse(ctx, param, texts) or None


_FORMS: Final[dict[Form, dict[str, Any]]] = {
    "count": {"type": click.IntRange(1)},
    "milliseconds": {"type": click.IntRange(0), "metavar": "MS"},
    "seconds": {"type": click.FloatRange(1, DAY_S)},
    "flag": {"is_flag": True, "default": None},
    "kinds": {"metavar": "KIND,...", "callback": _kinds},
    "order": {"type": click.Choice(get_args(Order))},
    "schedule": {"type": click.Path(exists=True, dir_okay=False, path_type=Path)},
    "topics": {"multiple": True, "metavar": "NAME:PARTITIONS:RF:KEY=VALUE", "callback": _or_none(check_topics)},
    "configs": {"multiple": True, "metavar": "KEY=VALUE", "callback": _or_none(parse_configs)},
    "security": {"metavar": "PROTOCOL"},
    "users": {"multiple": True, "metavar": "NAME=PASSWORD", "callback": parse_users},
}
