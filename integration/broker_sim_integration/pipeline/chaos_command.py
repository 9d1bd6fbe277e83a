"""The command `broker-sim-pipeline chaos`, in a module of its own because its options import the simulator."""

from __future__ import annotations

from typing import Any

import click

from broker_sim.cli.settings_options import read_settings, settings_options
from broker_sim_integration.pipeline.cli import job


@job("chaos")
@click.option(
    "--test",
    "name",
    required=True,
    metavar="MODULE:FUNCTION",
    help="The test, as for `broker-sim chaos`, found from the current directory.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="First seed.")
@settings_options
@click.option(
    "--examined",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of failed seeds of each invariant that are shrunk.",
)
@click.option("--tasks", type=click.IntRange(1), help="Number of Spark tasks for the runs.")
def chaos(
    module: Any,
    spark: Any,
    output: str,
    name: str,
    seed: int,
    examined: int,
    tasks: int | None,
    **settings: Any,
) -> str:
    """Run an application's test under the faults of very many seeds, in virtual time.

    The options of the test's pytest marker `chaos` apply, unless an option overrides them.
    """
    test = module.load(name, **read_settings(settings))
    return str(module.run(spark, module.ChaosPlan(test, seed, examined), output, tasks))
