"""`broker-sim run`: a cluster in a process of its own.

Prints one line of JSON on stdout when every broker serves; everything else goes to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import random
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from broker_sim.cli.logs import LEVELS, configure_logs
from broker_sim.cli.parameters import TopicText, parse_configs, parse_topics
from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.cluster import new_event_loop
from broker_sim.cluster.trace_topic import TraceTopic
from broker_sim.control.server import ControlServer
from broker_sim.errors import ApiError, ConfigError
from broker_sim.protocol.release import releases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.trace import Trace

__all__ = ["command"]

LAST_PORT = 65535


class _Options(NamedTuple):
    """What `run` was asked for."""

    brokers: int
    host: str
    advertised_host: str | None
    port: int
    topics: Sequence[TopicText]
    configs: Mapping[str, str]
    control_host: str
    control_port: int
    trace_path: str | None
    trace_topic: str | None
    as_version: str
    seed: int | None


@click.command("run")
@click.option("--brokers", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the brokers listen.")
@click.option("--advertised-host", help="The host that clients are told, if it is not --host.")
@click.option(
    "--port",
    type=click.IntRange(0, LAST_PORT),
    default=0,
    show_default=True,
    help="Broker 1 takes it, broker 2 the next, and so on; 0 takes any that are free.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    callback=parse_topics,
    metavar="NAME:PARTITIONS:RF:KEY=VALUE",
    help="Create a topic; all but the name may be left out.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    callback=parse_configs,
    metavar="KEY=VALUE",
    help="A configuration of all brokers, under Kafka's name.",
)
@click.option(
    "--trace",
    "trace_path",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the life of every delayed operation as JSON lines; *.gz is compressed.",
)
@click.option(
    "--trace-topic",
    metavar="NAME",
    help="Write the same into a topic of the cluster itself, one line a record.",
)
@click.option(
    "--control-port",
    type=click.IntRange(0, LAST_PORT),
    default=0,
    show_default=True,
    help="Where `broker-sim ctl` is served; 0 takes any port that is free.",
)
@click.option(
    "--control-host",
    default="127.0.0.1",
    show_default=True,
    help="Who can reach it can kill brokers: leave it on loopback, except in a container.",
)
@click.option(
    "--as-version",
    type=click.Choice(tuple(releases())),
    default=tuple(releases())[-1],
    show_default=True,
    help="The Kafka release whose API versions are advertised and served.",
)
@click.option("--seed", type=int, help="Makes ids and random choices the same every time.")
@click.option("--log-level", type=click.Choice(LEVELS), default="warning", show_default=True)
def command(*, log_level: str, **options: Any) -> None:
    """Start a cluster and serve until SIGINT or SIGTERM.

    Prints {"bootstrap_servers", "control", "pid"} as one line of JSON when it is ready.
    """
    if options["port"] + options["brokers"] > LAST_PORT + 1:
        raise click.UsageError(f"--port {options['port']} leaves no ports for all brokers")
    configure_logs(log_level)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_run(_Options(**options)))
    except (ConfigError, ApiError) as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename is not None:
            reason = f"cannot write {error.filename}: {reason}"
        raise click.ClickException(reason) from error


async def _run(options: _Options) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with contextlib.AsyncExitStack() as stack:
        trace_topic = TraceTopic(options.trace_topic) if options.trace_topic else None
        trace = _open_trace(options.trace_path, trace_topic, options.seed)
        if trace is not None:
            stack.enter_context(trace)
        control = ControlServer(options.control_port, options.control_host)
        cluster = AsyncCluster(
            options.brokers,
            configs=options.configs,
            host=options.host,
            advertised_host=options.advertised_host,
            ports=range(options.port, options.port + options.brokers) if options.port else None,
            seed=options.seed,
            trace=trace,
            control=control,
            as_version=options.as_version,
        )
        await stack.enter_async_context(cluster)
        for topic in options.topics:
            await cluster.create_topic(*topic)
        if trace_topic is not None:
            trace_topic.open(cluster.nodes)
        _print_ready(cluster)
        gc.freeze()
        gc.enable()
        # Not with the first event: the import would disturb what a user measures then.
        await asyncio.to_thread(import_module, "structlog")
        await stopped.wait()


def _open_trace(path: str | None, topic: TraceTopic | None, seed: int | None) -> Trace | None:
    """Return a trace into the file, the topic, or both; None if there is neither."""
    sinks = [sink for sink in (path, topic) if sink is not None]
    if not sinks:
        return None
    from broker_sim.trace import Trace  # noqa: PLC0415 - rarely used

    return Trace(
        *sinks,
        run_id=random.Random(seed).randbytes(8).hex(),
        untraced_topic=None if topic is None else topic.name,
    )


def _print_ready(cluster: AsyncCluster) -> None:
    ready = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "control": cluster.control_url,
        "pid": os.getpid(),
    }
    sys.stdout.write(f"{json.dumps(ready)}\n")
    sys.stdout.flush()
