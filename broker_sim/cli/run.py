"""`broker-sim run`: a cluster in a process of its own.

Prints one line of JSON on stdout when every broker serves; everything else goes to stderr.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import json
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click
from broker_sim_purgatory import compiled

from broker_sim.cli.logs import FORMATS, LEVELS, logs_on_stderr
from broker_sim.cli.parameters import (
    USERS_VARIABLE,
    WithCommand,
    check_topics,
    parse_broker_configs,
    parse_configs,
    parse_features,
    parse_memory,
    parse_users,
)
from broker_sim.cli.shutdown import Shutdown
from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.cluster.listeners.broker_listeners import LAST_PORT
from broker_sim.cluster.trace_topic import TraceTopic
from broker_sim.control.client import TOKEN_VARIABLE
from broker_sim.control.server import ControlServer
from broker_sim.errors import ApiError, ConfigError, MissingExtraError, UnknownBrokerError
from broker_sim.protocol.release import DEFAULT_RELEASE, releases
from broker_sim.runtime.scheduler import new_event_loop
from broker_sim.runtime.sockets import LIMIT_ADVICE, OPEN_FILES_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.trace import Trace

GC_THRESHOLDS = (20_000, 10, 100)
"""Thresholds of the garbage collector: full collections are rare, because one takes 40 ms with hundreds of topics.

Objects of the start are never collected, and later ones hardly ever form cycles.
"""


class _Options(NamedTuple):
    """The options of `run`."""

    brokers: int
    first_broker_id: int
    host: str
    advertised_host: str | None
    port: int
    listeners: str | None
    advertised_listeners: str | None
    security: str | None
    users: Mapping[str, str] | None
    ca_path: str | None
    topics: Sequence[str]
    configs: Mapping[str, str]
    broker_configs: Mapping[int, Mapping[str, str]]
    control_host: str
    control_port: int
    control_names: Sequence[str]
    control_token: str | None
    control_read_only: bool
    trace_path: str | None
    trace_topic: str | None
    as_version: str
    features: Mapping[str, int]
    seed: int | None
    memory_limit: int | None
    cluster_id: str | None
    data_dir: str | None
    until_stdin_closes: bool


@click.command("run", cls=WithCommand)
@click.option(
    "--virtual",
    "is_virtual",
    is_flag=True,
    help="Run COMMAND, written after --, in virtual time with a cluster of its own; exit with its exit code.",
)
@click.option("--brokers", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option(
    "--first-broker-id",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Id (node.id) of the first broker; the other brokers have the following ids.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address on which the brokers listen.")
@click.option(
    "--advertised-host",
    envvar="BROKER_SIM_ADVERTISED_HOST",
    help="Host to which clients connect [default: --host]; or set BROKER_SIM_ADVERTISED_HOST.",
)
@click.option(
    "--port",
    type=click.IntRange(0, LAST_PORT),
    default=0,
    show_default=True,
    help="Port of the first broker; the other brokers use the following ports. 0 uses any free ports.",
)
@click.option(
    "--listeners",
    metavar="NAME://HOST:PORT,...",
    help="Listeners in place of --host and --port; the second broker uses the next ports, 0 is any free port. "
    "Clients get the addresses of the listener that they use.",
)
@click.option(
    "--advertised-listeners",
    metavar="NAME://HOST:PORT,...",
    help="Addresses for clients, by listener [default: --listeners].",
)
@click.option(
    "--security",
    metavar="PROTOCOL",
    help="plaintext, ssl, sasl_plaintext or sasl_ssl: TLS (ssl) and logins by PLAIN or SCRAM (sasl).",
)
@click.option(
    "--ca-certificate",
    "ca_path",
    type=click.Path(writable=True, dir_okay=False),
    help="With TLS: write the certificates that clients must trust to this file, as PEM.",
)
@click.option(
    "--user",
    "users",
    multiple=True,
    callback=parse_users,
    envvar=USERS_VARIABLE,
    metavar="NAME=PASSWORD",
    help=f"A user who may log in; or set {USERS_VARIABLE}, which other users of the machine cannot read.",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    callback=check_topics,
    metavar="NAME:PARTITIONS:RF:KEY=VALUE",
    help="Create a topic; all parts but the name are optional.",
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
    "--broker-config",
    "broker_configs",
    multiple=True,
    callback=parse_broker_configs,
    metavar="BROKER:KEY=VALUE",
    help="A configuration of one broker, such as 1:broker.rack=a.",
)
@click.option(
    "--trace",
    "trace_path",
    type=click.Path(writable=True),
    help="Write the life of every delayed operation to this file as JSON lines; *.gz is compressed, *.parquet "
    "is a directory of Parquet files.",
)
@click.option(
    "--trace-topic", metavar="NAME", help="Write the trace into a topic of the cluster itself, one record per line."
)
@click.option(
    "--control-port",
    type=click.IntRange(0, LAST_PORT),
    default=0,
    show_default=True,
    help="Port for the page in a browser and for `broker-sim ctl`; 0 is any free port.",
)
@click.option(
    "--control-host",
    default="127.0.0.1",
    show_default=True,
    help="Address of the control port. Any program that reaches it can kill brokers: keep it on loopback, except in a "
    "container.",
)
@click.option(
    "--control-name",
    "control_names",
    multiple=True,
    metavar="HOST",
    help="Additional host name for the control port, besides loopback and --control-host.",
)
@click.option(
    "--control-token",
    envvar=TOKEN_VARIABLE,
    metavar="TOKEN",
    help=f"Token that requests to the control port need; or set {TOKEN_VARIABLE}. Required beyond loopback.",
)
@click.option(
    "--control-token-file", metavar="FILE", help="Read the token from this file, so that process lists do not show it."
)
@click.option(
    "--control-read-only",
    is_flag=True,
    help="Refuse changes of the cluster at the control port: the page and `broker-sim ctl` can only read.",
)
@click.option(
    "--as-version",
    type=click.Choice(tuple(releases())),
    default=DEFAULT_RELEASE,
    show_default=True,
    help="The Kafka release whose API versions, features and behaviour the cluster has.",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    callback=parse_features,
    metavar="NAME=LEVEL",
    help="Feature level of a new cluster, such as metadata.version=19 [default: that of the release].",
)
@click.option("--seed", type=int, help="Seed of ids and random choices, for repeatable runs.")
@click.option(
    "--cluster-id",
    metavar="TEXT",
    help="Id of the cluster, printable ASCII without spaces [default: a UUID, random or drawn from --seed].",
)
@click.option(
    "--memory-limit",
    callback=parse_memory,
    metavar="SIZE",
    help="Maximum memory of all logs, such as 512MB or 2GB [default: half of the machine's]. "
    "Records beyond it are refused.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, writable=True),
    help="Directory for all data; a later start with it continues from that data, even after a kill.",
)
@click.option(
    "--until-stdin-closes",
    is_flag=True,
    help="Also stop at the end of stdin, so that a parent process with a pipe to it leaves no process behind.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="warning",
    show_default=True,
    help="Lowest level to log; info logs what Kafka logs: brokers, leaders, ISRs, topics.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="console",
    show_default=True,
    help="Format of the lines on stderr.",
)
def command(
    *,
    is_virtual: bool,
    words: Sequence[str] | None,
    log_level: str,
    log_format: str,
    control_token_file: str | None,
    **options: Any,
) -> None:
    """Start a cluster and serve until SIGINT or SIGTERM.

    Prints {"bootstrap_servers", "control", "build", "pid", "memory_limit_bytes"} as one line of JSON when it is ready;
    build is native or pure, for the purgatory. With several listeners, "listeners" has the servers of each.

    With --virtual -- COMMAND an unmodified program runs in virtual time instead, and finds the cluster in
    KAFKA_BOOTSTRAP_SERVERS. The same --seed gives the same run, with the same trace digest on stderr.
    """
    if is_virtual or words is not None:
        _run_virtual(words, is_virtual=is_virtual, options=options)
    if options["port"] + options["brokers"] > LAST_PORT + 1:
        raise click.UsageError(
            f"--port {options['port']} is too high for {options['brokers']} brokers: pass a lower port, or 0"
        )
    if control_token_file is not None:
        options["control_token"] = _read_token(control_token_file)
    elif options["control_token"] is not None:
        _check_token(options["control_token"], "--control-token")
    if sys.stdout is None:
        raise click.ClickException(
            "stdout is closed, but the ready line is written there; redirect it: broker-sim run >ready.json"
        )
    try:
        with logs_on_stderr(log_level, log_format), asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_run(_Options(**options)))
    except (ConfigError, ApiError, UnknownBrokerError) as error:
        raise click.UsageError(str(error)) from error
    except MissingExtraError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(_reason(error)) from error


def _run_virtual(words: Sequence[str] | None, *, is_virtual: bool, options: Mapping[str, Any]) -> NoReturn:
    if words is None or not is_virtual:
        raise click.UsageError("to run a command in virtual time, use --virtual -- COMMAND")
    from broker_sim.cli.run_virtual import OPTIONS, run_program  # noqa: PLC0415 - only for virtual time

    context = click.get_current_context()
    for option in context.command.params:
        source = context.get_parameter_source(name := option.name or "")
        if name not in {*OPTIONS, "is_virtual", "seed"} and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} has no effect in virtual time")
    sys.exit(run_program(words, options["seed"] or 0, **{name: options[name] for name in OPTIONS}))


def _reason(error: OSError) -> str:
    """Return why the command failed, with advice."""
    reason = error.strerror or str(error)
    if isinstance(error, BrokenPipeError):
        reason = "nobody reads stdout, where the ready line is written; redirect it to a file"
    elif error.filename is not None:
        reason = f"cannot write {error.filename}: {reason}"
    elif error.errno == errno.ENOSPC:
        reason = f"cannot write the ready line to stdout: {reason}; redirect it to another disk"
    if error.errno in OPEN_FILES_ERRORS and LIMIT_ADVICE not in reason:
        reason = f"{reason}; {LIMIT_ADVICE}, or use fewer brokers"
    return reason


def _read_token(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise click.UsageError(f"--control-token-file {path}: {reason}") from error
    if not token:
        raise click.UsageError(f"--control-token-file {path}: the file is empty; write the token into it")
    _check_token(token, f"--control-token-file {path}")
    return token


def _check_token(token: str, source: str) -> None:
    """Raise UsageError if the token is empty or cannot be sent in a header."""
    if len(token.split()) != 1 or not token.isprintable():
        raise click.UsageError(f"{source}: the token must be one non-empty word")


async def _run(options: _Options) -> None:
    shutdown = Shutdown(asyncio.get_running_loop())
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(shutdown.on_signals())
        if options.until_stdin_closes:
            shutdown.on_end_of_stdin()
        trace_topic = TraceTopic(options.trace_topic) if options.trace_topic else None
        trace = _open_trace(options.trace_path, trace_topic, options.seed)
        if trace is not None:
            stack.enter_context(trace)
        control = ControlServer(
            options.control_port,
            options.control_host,
            names=options.control_names,
            token=options.control_token,
            is_read_only=options.control_read_only,
        )
        stack.push_async_callback(control.close)  # in case no cluster is created that closes it
        cluster = AsyncCluster(
            options.brokers,
            topics=options.topics,
            first_broker_id=options.first_broker_id,
            configs=options.configs,
            broker_configs=options.broker_configs,
            host=options.host,
            advertised_host=options.advertised_host,
            ports=range(options.port, options.port + options.brokers) if options.port else None,
            listeners=options.listeners,
            advertised_listeners=options.advertised_listeners,
            security=options.security,
            users=options.users,
            seed=options.seed,
            trace=trace,
            control=control,
            as_version=options.as_version,
            features=options.features,
            memory_limit=options.memory_limit,
            cluster_id=options.cluster_id,
            data_dir=options.data_dir,
        )
        if not await shutdown.run(stack.enter_async_context(cluster)):
            return
        shutdown.halt = cluster.nodes.halt
        if trace_topic is not None:
            trace_topic.open(cluster.nodes)
        if options.ca_path is not None:
            _write_certificates(options.ca_path, cluster)
        _print_ready(cluster)
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()
        await shutdown.requested.wait()


def _open_trace(path: str | None, topic: TraceTopic | None, seed: int | None) -> Trace | None:
    """Return a trace that writes to the file, the topic, or both; None without either."""
    sinks = [sink for sink in (path, topic) if sink is not None]
    if not sinks:
        return None
    from broker_sim.trace import Trace  # noqa: PLC0415 - rarely used

    return Trace(
        *sinks, run_id=random.Random(seed).randbytes(8).hex(), untraced_topic=None if topic is None else topic.name
    )


def _write_certificates(path: str, cluster: AsyncCluster) -> None:
    Path(path).write_text(cluster.trusted_certificates, "ascii")


def _print_ready(cluster: AsyncCluster) -> None:
    ready: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap_servers}
    names = cluster.listeners.names
    if len(names) > 1:
        ready["listeners"] = {name: cluster.bootstrap_servers_of(name) for name in names}
    ready |= {
        "control": cluster.control_url,
        "build": "native" if compiled else "pure",
        "pid": os.getpid(),
        "memory_limit_bytes": cluster.nodes.memory.limit_bytes,
    }
    sys.stdout.write(f"{json.dumps(ready)}\n")
    sys.stdout.flush()
