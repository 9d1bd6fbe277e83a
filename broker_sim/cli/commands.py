"""The commands of a program, and its messages for unknown commands and options."""

from __future__ import annotations

import click


class Commands(click.Group):
    """The commands of a program; the error for an unknown name suggests the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. Raises UsageError if there is none."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from broker_sim.errors import did_you_mean  # noqa: PLC0415 - only for a mistake

            raise click.UsageError(f"unknown command '{name}'{did_you_mean(name, self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)


def one_line(error: click.ClickException) -> str:
    """Return the message and the command for help, on one line."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        from broker_sim.errors import did_you_mean  # noqa: PLC0415 - only for a mistake

        parent = error.ctx.parent
        if parent is not None and error.option_name in _options(parent):
            hint = f": write it before '{error.ctx.info_name}'"
        else:
            hint = did_you_mean(error.option_name, _options(error.ctx))
        text = f"unknown option '{error.option_name}'{hint}"
    else:
        text = " ".join(error.format_message().split())
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text = f"{text.rstrip('.')}; see {error.ctx.command_path} --help"
    return text


def _options(context: click.Context) -> list[str]:
    parameters = context.command.get_params(context)
    return [name for each in parameters for name in (*each.opts, *each.secondary_opts) if name[:1] == "-"]
