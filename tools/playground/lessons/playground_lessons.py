"""Plays lessons: scenarios of the comparison with a real Kafka, in virtual time, with a picture at each step.

lessons.toml says which scenarios a lesson plays, at which of their moments it stops, and what holds there. A moment is

    send Fetch          a request of the scenario's clients, and a few ms: it has arrived
    answer Fetch        its answer, when the scenario has it
    aside ElectLeaders  a request on a connection that no row measures
    pause third         a fault, also kill, resume, start
    wait, until isr     time that has passed
    create, alter       a topic that was made or changed
    seen woken          an observation of the scenario: a row of the comparison

A lesson whose claim does not hold raises LessonError.
"""

from __future__ import annotations

import importlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker_sim_integration.clients.raw_client import CLIENT_ID
from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
from broker_sim_integration.observations import Observation
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.scenarios.scenario import scenarios_of
from broker_sim_integration.virtual_time import virtual_time

from broker_sim import VirtualCluster
from broker_sim.errors import ErrorCode, did_you_mean
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.page.changes import changes

HERE = Path(__file__).parent
FAMILIES = "broker_sim_integration.scenarios.families"
PREFIX = "lesson"
LATENCY_MS = 1
ARRIVES_MS = 3
"""Time after which a request that was sent has arrived."""


class LessonError(AssertionError):
    """A claim of a lesson that does not hold; the text names lesson, step and claim."""


@dataclass
class Step:
    """A moment at which a lesson stops."""

    at: str
    """The moment, the first one after the step before; see above."""
    text: str
    nth: int = 1
    """Number of the moment among those of that name."""
    later_ms: int | None = None
    """Time that passes before the picture is taken."""
    waits: list[str] = field(default_factory=list)
    """The purgatories, each once, in which requests of the lesson's clients or a join phase wait then."""
    error: str = ""
    """The error of the row or of the answer."""
    partition: dict[str, Any] = field(default_factory=dict)
    """Fields of the lesson's partition 0 in the picture, and of its leader's replica."""
    of: int = 1
    """The number of the lesson's topic, if the scenario creates several."""
    group: dict[str, Any] = field(default_factory=dict)
    """Fields of the lesson's group in the picture."""
    purgatory: dict[str, Any] = field(default_factory=dict)
    """Fields of broker 1's purgatory of fetches in the picture."""
    index: list[str] = field(default_factory=list)
    """The segments of the leader's log, with their entries in the sparse index."""
    row: dict[str, Any] = field(default_factory=dict)
    """Fields of the row."""


@dataclass
class Part:
    """A scenario of a lesson, on a cluster of its own."""

    scenario: str
    """Folder, module and function, with dots between them."""
    steps: list[Step]


@dataclass
class Lesson:
    """A lesson of lessons.toml."""

    name: str
    title: str
    about: str
    parts: list[Part]


def lessons():
    """Return the lessons in their order."""
    tables = tomllib.loads((HERE / "lessons.toml").read_text("utf-8"))["lesson"]
    return [Lesson(**{**table, "parts": [_part(**part) for part in table["parts"]]}) for table in tables]


def _part(scenario, steps):
    return Part(scenario, [Step(**step) for step in steps])


def scenario_of(part):
    """Return the scenario of a part."""
    module, _, name = part.scenario.rpartition(".")
    scenarios = scenarios_of(importlib.import_module(f"{FAMILIES}.{module}"))
    return next(scenario for scenario in scenarios if scenario.name == name)


class _Playing:
    """One part while it is played."""

    def __init__(self, lesson, part, rows):
        self.lesson = lesson
        self.part = part
        self.scenario = scenario_of(part)
        self.rows = rows
        self.steps = iter(part.steps)
        self.step = next(self.steps)
        self.count = 0
        """Number of moments of the next step's name so far."""
        self.under_test = None
        """The cluster as the scenario has it, while it plays."""
        self.pictures = []
        self.observations = []
        self.before = {}
        self.cluster = VirtualCluster(
            3, configs=COMMON_CONFIGS | dict(self.scenario.configs), latency_ms=lambda *_: LATENCY_MS
        )
        self.cluster.loop.network.latency_ms = LATENCY_MS

    def play(self):
        """Play it to its end; return its steps and rows for the page."""
        with virtual_time(self.cluster, self.hear) as running:
            with ClusterUnderTest(running, "warm-up") as preparing:
                warm = preparing.topics.warm_up()
            with ClusterUnderTest(running, PREFIX, warm_topic=warm) as under_test:
                self.under_test = under_test
                self.listen()
                for observation in self.scenario.function(under_test):
                    self.observations.append(observation)
                    self.moment(f"seen {observation.step}", observation=observation)
                self.under_test = None
        self.cluster.close()
        if self.step is not None:
            self.fail("the scenario is over, and the moment has not come")
        return {
            "scenario": self.scenario.name,
            "steps": self.pictures,
            "rows": len(self.observations),
            "agree": self.agreeing(),
        }

    def listen(self):
        """Let the methods of the cluster under test tell of faults, waits and changes."""
        cluster = self.under_test
        call, role = cluster.faults.call, cluster.brokers.role

        def fault(verb, broker, **options):
            done = call(verb, broker, **options)
            self.moment(f"{verb} {role(broker)}", f"{verb} broker {broker}")
            return done

        cluster.faults.call = fault
        self.tell(cluster, "wait", "wait", "{0:g} ms pass")
        self.tell(cluster.topics, "create", "create topic", "")
        self.tell(cluster.topics, "alter", "alter topic", "")
        for name in ("isr", "leader", "brokers", "visible", "serving", "replicated"):
            self.tell(cluster.wait_until, name, f"until {name}", "")

    def tell(self, owner, name, moment, line):
        """Let a method tell when it returns."""
        method = getattr(owner, name)

        def call(*args, **options):
            done = method(*args, **options)
            self.moment(moment, line.format(*args) or moment)
            return done

        setattr(owner, name, call)

    def hear(self, kind, connection, message, version):
        """Hear of a request or an answer."""
        if self.under_test is None:
            return
        name = type(message).__name__.removesuffix("Request").removesuffix("Response")
        line = " ".join([f"{name} v{version}", *_fields(message)])
        is_aside = connection in self.under_test.clients._shared.values()
        self.moment(f"{'aside' if is_aside else kind} {name}", line, message=message)

    # -- steps ------------------------------------------------------------------------------------

    def moment(self, name, line="", message=None, observation=None):
        """Take a picture if the next step is at this moment, and check what it claims."""
        step = self.step
        if step is None or step.at != name:
            return
        self.count += 1
        if self.count < step.nth:
            return
        later_ms = (ARRIVES_MS if name.startswith("send ") else 0) if step.later_ms is None else step.later_ms
        if later_ms:
            self.cluster.advance(later_ms)
        picture = self.cluster.picture(PREFIX)
        parts = {
            name: part for name, part in picture.parts.items()
            if not (name.startswith("partition/") and not part["topic"].startswith((PREFIX, "__")))
        }  # fmt: skip
        row = None if observation is None else self.row(observation)
        self.check(step, parts, message, observation)
        change = {"at_ms": picture.at_ms, **changes(self.before, parts)}
        self.pictures.append(
            {"at": name, "text": " ".join(step.text.split()), "line": line, "row": row, "change": change}
        )
        self.before = parts
        self.step, self.count = next(self.steps, None), 0

    def check(self, step, parts, message, observation):
        """Raise LessonError if what the step claims does not hold."""
        waits = {
            part["name"]
            for name, part in parts.items()
            if name.startswith("purgatory/") and part["name"] != "Heartbeat"
            for parked in part["parked"]
            if parked["client_id"] == CLIENT_ID or part["name"] == "Rebalance"
        }
        self.claim("waits", sorted(waits), sorted(step.waits))
        if step.error:
            code = observation.error_code if observation is not None else getattr(message, "error_code", None)
            self.claim("error", None if code is None else ErrorCode(code).name, step.error)
        partition = parts.get(f"partition/{PREFIX}.{step.of}/0", {})
        group = next((part for name, part in parts.items() if name.startswith(f"group/{PREFIX}")), {})
        leader = next((one for one in partition.get("replicas", ()) if one["broker"] == partition["leader"]), {})
        for kind, claims, facts in (
            ("partition", step.partition, {**leader, **partition}),
            ("group", step.group, group),
            ("purgatory", step.purgatory, parts["purgatory/1/Fetch"]),
            ("row", step.row, {} if observation is None else observation.exact()),
        ):
            for name, claim in claims.items():
                fact = facts.get(name)
                self.claim(f"{kind}.{name}", sorted(fact) if name == "isr" else fact, claim)
        if step.index:
            self.claim("index", self.index(partition), step.index)

    def index(self, partition):
        """Return the segments of the leader's log, with the number of their batches and the entries of the index."""
        broker = self.cluster.nodes.brokers[partition["leader"]]
        key = TopicPartition(partition["topic"], partition["partition"])
        segments = broker.replica_manager.partitions[key].log._local_log._segments
        lines = []
        for segment in segments:
            entries = segment._batches._entries
            count = len(entries.positions) - 1
            places = [f"byte {entries.positions[batch]}" for batch in entries.indexed()]
            batches = f"{count} batch{'es' * (count != 1)}"
            lines.append(f"{segment.base_offset}: {batches}, {' and '.join(places) or 'no entry'}")
        return lines

    def claim(self, what, fact, claim):
        """Raise LessonError unless both are equal."""
        if fact != claim:
            self.fail(f"{what} is {fact!r}, and not {claim!r}")

    def fail(self, text):
        """Raise LessonError for the next step."""
        step = self.step
        raise LessonError(
            f"{self.lesson.name}, {self.part.scenario}, step {len(self.pictures) + 1} at {step.at!r}: {text}"
        )

    # -- rows -------------------------------------------------------------------------------------

    def exact(self, observation):
        """Return the compared fields, with the names that the comparison gives to topics and groups."""
        return json.loads(json.dumps(_exact(observation)).replace(f"{PREFIX}.", f"{self.scenario.name[:60]}.1."))

    def row(self, observation):
        """Return the row of the comparison: the recorded answer of Kafka, and the answer here."""
        kafka = next(
            (one for one in self.rows if (one.step, one.attempt) == (observation.step, observation.attempt)), None
        )
        return {
            "step": observation.step, "due": str(observation.timing),
            "here": _facts(observation), "kafka": None if kafka is None else _facts(kafka),
            "agrees": kafka is not None and _exact(kafka) == self.exact(observation),
        }  # fmt: skip

    def agreeing(self):
        """Return the number of rows that are as recorded."""
        return sum(self.exact(one) == _exact(other) for one, other in zip(self.observations, self.rows, strict=False))


def _fields(message):
    """Return the numbers and texts of a request or an answer, apart from defaults."""
    usual = type(message)()
    for name in message.__slots__:
        value = getattr(message, name)
        if name == "error_code":
            yield ErrorCode(value).name
        elif value != getattr(usual, name) and isinstance(value, str | int | float):
            yield f"{name}={value}"


def _exact(observation):
    """Return the compared fields as JSON has them."""
    facts = {name: fact for name, fact in observation.exact().items() if fact is not None}
    return json.loads(json.dumps(facts))


def _facts(observation):
    facts = _exact(observation)
    if "error_code" in facts:
        facts["error_code"] = ErrorCode(facts["error_code"]).name
    return {"ms": round(observation.elapsed_ms, 1), "facts": facts}


def play(lesson, recording):
    """Play a lesson to its end; return its steps and rows for the page. Raises LessonError.

    `recording` has rows, Kafka's version and the date by scenario.
    """
    parts = []
    for part in lesson.parts:
        kafka = recording[part.scenario]
        rows = [Observation.from_json(row) for row in kafka["rows"]]
        parts.append({**_Playing(lesson, part, rows).play(), "kafka": kafka["kafka"], "recorded": kafka["recorded"]})
    return {"name": lesson.name, "parts": parts}


def play_named(name):
    """Play the lesson of that name with the recording that is beside this module."""
    by_name = {lesson.name: lesson for lesson in lessons()}
    if name not in by_name:
        raise LookupError(f"there is no lesson {name!r}{did_you_mean(name, by_name)}")
    return play(by_name[name], json.loads((HERE / "recorded.json").read_text("utf-8")))
