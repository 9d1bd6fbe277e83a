"""`broker-sim run --virtual -- COMMAND`: one run of a program with a cluster, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from broker_sim.chaos.command import shell_exit_code
from broker_sim.chaos.run import MIN_LATENCY_MS
from broker_sim.cli.parameters import check_command
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.errors import ApiError, ConfigError, MissingExtraError
from broker_sim.runtime.virtual import VirtualRunError, pin_hash_seed, run
from broker_sim.runtime.virtual.programs import NoVirtualProgramsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.runtime.virtual import VirtualEventLoop

OPTIONS: Final = ("brokers", "first_broker_id", "topics", "configs", "broker_configs", "as_version", "features")
"""Options of `broker-sim run` that also apply in virtual time, as arguments of the cluster."""


class _End(NamedTuple):
    exit_code: int
    virtual_s: float
    digest: str


def run_program(words: Sequence[str], seed: int, **options: Any) -> int:
    """Run the program, print its output, and the digest of the run on stderr; return its exit code.

    Raises ClickException.
    """
    check_command(words, in_virtual_time=True)
    pin_hash_seed()

    async def main(loop: VirtualEventLoop) -> _End:
        loop.network.latency_ms = MIN_LATENCY_MS
        async with SimulatedCluster(loop, check_invariants=False, **options) as kafka:
            code = await kafka.start_program(*words, on_output=click.echo).wait()
            return _End(code, loop.time(), loop.trace.digest())

    try:
        end = run(main, seed)
    except (ConfigError, ApiError) as error:
        raise click.UsageError(str(error)) from None
    except (VirtualRunError, NoVirtualProgramsError, MissingExtraError, OSError) as error:
        raise click.ClickException(str(error)) from None
    code = shell_exit_code(end.exit_code)
    click.echo(
        f"seed {seed}: exit code {code} after {end.virtual_s:.3f} s of virtual time, trace {end.digest}", err=True
    )
    return code
