"""The command `broker-sim`: `run` starts a cluster, `ctl` and `top` work on a running one.

`chaos` and `simulate` run clusters of their own in virtual time; `why` and `replay` read traces. A command's module
is imported when the command is called, so that `run` does not import the tables of `ctl`, and `ctl` no cluster.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import click

from broker_sim.cli.commands import Commands, one_line
from broker_sim.cli.standard_streams import standard_streams

__all__ = ["main"]

COMMANDS = {
    "run": (
        "broker_sim.cli.run",
        "Start a cluster and serve until SIGINT or SIGTERM, or run a program in virtual time.",
    ),
    "ctl": ("broker_sim.cli.ctl", "Control and inspect a running cluster."),
    "chaos": ("broker_sim.cli.chaos", "Run a test of an application under faults in virtual time, seed after seed."),
    "simulate": ("broker_sim.cli.simulate", "Run clusters with random faults in virtual time, seed after seed."),
    "top": ("broker_sim.cli.top", "Watch the purgatories of a running cluster."),
    "replay": ("broker_sim.cli.replay", "Write a trace, or two runs, as one HTML file that plays in a browser."),
    "why": ("broker_sim.cli.why", "Explain from a trace why acks=all requests were slow."),
}


class _Commands(Commands):
    """Lists all commands, and imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group("broker-sim", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="broker-sim")
@click.pass_context
def _broker_sim(context: click.Context) -> None:
    """Run a mini Kafka cluster, inspect its delayed operations, and inject faults."""
    # Imports are done, except for `run`, which enables the collector when it serves.
    if context.invoked_subcommand != "run":
        gc.enable()


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong usage.

    An error is one line on stderr with advice.
    """
    with standard_streams("broker-sim"):
        sys.exit(_exit_code())


def _exit_code() -> int:
    # Collecting during imports would only cost time, because modules are never garbage.
    gc.disable()
    try:
        code = _broker_sim.main(prog_name="broker-sim", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        click.echo(f"broker-sim: {one_line(error)}", err=True)
        code = error.exit_code
    except click.Abort:
        code = 130
    finally:
        gc.enable()
    return code if isinstance(code, int) else 0
