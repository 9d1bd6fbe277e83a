"""A virtual cluster for the page: time moves when the page says so, verbs and clients are buttons.

What the page gets are the pictures of `broker_sim.page`, as it gets them from a control port.
"""

from __future__ import annotations

import asyncio
import json

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from playground_share import ShareMember

from broker_sim import VirtualCluster
from broker_sim.control.forms import forms_of, takes_fault
from broker_sim.control.verb import verbs_of
from broker_sim.errors import ApiError, ClusterTimeoutError, ConfigError, WrongStateError
from broker_sim.handlers.faults import Fault
from broker_sim.page.changes import changes
from broker_sim.runtime.process import ProcessState
from broker_sim.runtime.virtual import install
from broker_sim.runtime.virtual.stdlib.kafka_clients import prepare_aiokafka

CLIENT = {"request_timeout_ms": 40_000, "retry_backoff_ms": 100, "metadata_max_age_ms": 30_000}
LONGEST_STEP_MS = 60_000
WORK_S = 2
"""Time that a member of a share group works on what it gets."""
REFUSALS = (ValueError, LookupError, ApiError, ClusterTimeoutError, ConfigError, WrongStateError, OSError, TypeError)
"""Errors that tell the caller of a verb what is wrong with the call."""


class Playground:
    """A cluster, its clients, and the last picture that the page has got."""

    def __init__(self, brokers=3, topics=("orders:2:3",), seed=0):
        install()
        prepare_aiokafka()
        self.cluster = VirtualCluster(
            brokers,
            topics=topics,
            seed=seed,
            latency_ms=lambda *_: 1,
            configs={"group.initial.rebalance.delay.ms": 1_000, "offsets.topic.num.partitions": 1,
                     "transaction.state.log.num.partitions": 1, "share.coordinator.state.topic.num.partitions": 1},
        )  # fmt: skip
        self.cluster.loop.network.latency_ms = 1
        self.before = {}
        self.log = []
        self.clients = {}
        self.count = 0
        self.shown = ("", 0, 0)
        """A part of partitions' names, and the level and index of a bucket whose operations are shown."""

    def close(self):
        """End the clients and the cluster."""
        for broker_id, node in self.cluster.nodes.nodes.items():
            if node.state is ProcessState.PAUSED:
                self.cluster.resume(broker_id)
        for task in [*self.clients.values()]:
            task.cancel()
        self.cluster.wait_until(lambda: not self.clients)
        self.cluster.close()

    # -- time -------------------------------------------------------------------------------------

    def advance(self, ms):
        """Let that many virtual milliseconds pass."""
        self.cluster.advance(ms)

    def step(self):
        """Let time pass until an operation parks or leaves."""
        before, end_ms = self._parked(), self.cluster.now_ms + LONGEST_STEP_MS
        while self._parked() == before and self.cluster.now_ms < end_ms and self.cluster.step():
            pass

    def _parked(self):
        return [
            [task.task for task in purgatory.timer.placements()]
            for broker in self.cluster.nodes.brokers.values()
            for purgatory in broker.purgatories
        ]

    # -- verbs and clients ------------------------------------------------------------------------

    def call(self, name, values):
        """Call a verb of the cluster; return None, or what is wrong with the call."""
        method, verb = getattr(self.cluster, name), verbs_of(VirtualCluster)[name]
        try:
            if takes_fault(verb):
                method(Fault(**values))
            else:
                method(**{key: _typed(verb, key, value) for key, value in values.items()})
        except REFUSALS as error:
            return str(error)
        except AssertionError as error:  # a failed wait names the seed in the lines below
            return str(error).splitlines()[0]
        return None

    def produce(self, topic, values, acks="all", key=None, transaction=False):
        """Send records by a producer of their own, in the background."""
        self._start("producer", self._produce, topic, values, acks, key, transaction)

    async def _produce(self, name, topic, values, acks, key, transaction):
        options = {"transactional_id": f"{name}-tx"} if transaction else {"acks": "all" if acks == "all" else int(acks)}
        servers = self.cluster.inside.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=servers, client_id=name, **CLIENT, **options) as producer:
            if transaction:
                await producer.begin_transaction()
            for value in values:
                began = self.cluster.loop.time()
                sent = await producer.send(topic, value.encode(), key=None if key is None else key.encode())
                self.say(name, f"sends {value!r}, acks={'all' if transaction else acks}")
                record = await sent
                if record is None:
                    self.say(name, f"{value!r} is sent: with acks=0 no broker answers")
                    continue
                waited = (self.cluster.loop.time() - began) * 1_000
                place = f"{topic}-{record.partition}, offset {record.offset}"
                self.say(name, f"{value!r} is at {place}: acknowledged after {waited:.0f} ms")
            if transaction:
                await asyncio.sleep(5)
                await producer.commit_transaction()
                self.say(name, "commits its transaction")

    def consume(self, topic, group, isolation="read_uncommitted"):
        """Start a member of a group."""
        self._start("consumer", self._consume, topic, group, isolation)

    async def _consume(self, name, topic, group, isolation):
        servers = self.cluster.inside.bootstrap_servers
        async with AIOKafkaConsumer(
            topic, bootstrap_servers=servers, client_id=name, group_id=group or None, isolation_level=isolation,
            auto_offset_reset="earliest", fetch_max_wait_ms=5_000, **CLIENT,
        ) as consumer:  # fmt: skip
            self.say(name, f"reads {topic}" + (f" in group {group!r}" if group else ""))
            async for record in consumer:
                self.say(
                    name,
                    f"has {record.value.decode()!r} from {record.topic}-{record.partition}, offset {record.offset}",
                )

    def share(self, topic, group, answer="accept"):
        """Start a member of a share group; new groups begin with the first records."""
        self.cluster.set_group_configs(group, {"share.auto.offset.reset": "earliest"})
        self._start("share", lambda name: ShareMember(self.cluster, name, group, topic, answer, WORK_S, self.say).run())

    def stop(self, name):
        """End a client as its application would."""
        self.clients[name].cancel()

    def _start(self, kind, run, *args):
        self.count += 1
        name = f"{kind}-{self.count}"
        self.clients[name] = self.cluster.loop.create_task(self._ending(name, run(name, *args)))

    async def _ending(self, name, course):
        try:
            await course
        except asyncio.CancelledError:
            self.say(name, "is stopped")
        except Exception as error:  # noqa: BLE001 - it is told to the reader of the page
            self.say(name, f"fails: {type(error).__name__}: {error}")
        finally:
            self.clients.pop(name, None)

    def say(self, who, text):
        """Add a line to what clients tell."""
        self.log.append({"at_ms": self.cluster.now_ms, "who": who, "text": text})

    # -- pictures ---------------------------------------------------------------------------------

    def look(self, search, level, bucket):
        """Show the partitions with a text in their names, and the operations of a bucket."""
        self.shown = (search, level, bucket)

    def change(self):
        """Return the parts of the picture that changed, and what clients told meanwhile."""
        picture = self.cluster.picture(*self.shown)
        after = picture.parts
        event = {"at_ms": picture.at_ms, **changes(self.before, after)}
        self.before = after
        said, self.log = self.log, []
        return {**event, "said": said, "clients": sorted(self.clients)}


def _typed(verb, name, value):
    """Return a value from a form as the verb's parameter takes it."""
    return tuple(value) if "tuple" in verb.annotation(name) and isinstance(value, list) else value


_playground = None


def do(verb, values):
    """Do one thing to the cluster; return the change of the picture, and the error of the call."""
    global _playground
    values = json.loads(values)
    if verb == "new":
        if _playground is not None:
            _playground.close()
        _playground = Playground(**values)
        return json.dumps({**_playground.change(), "verbs": forms_of(VirtualCluster)})
    error = None
    try:
        if verb == "call":
            error = _playground.call(values["name"], values["values"])
        else:
            getattr(_playground, verb)(**values)
    except AssertionError as failure:
        error = str(failure).splitlines()[0]
    return json.dumps({**_playground.change(), "error": error})
