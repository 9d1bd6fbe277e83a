"""Kafka's own PartitionChangeBuilder comes to the same next state of a partition.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure. Set
BROKER_SIM_SEED to repeat a failing run: its seed is in the failure.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest

from broker_sim.controller.partition_change_builder import Election, PartitionChangeBuilder
from broker_sim.metadata import NO_LEADER, PartitionState

pytestmark = pytest.mark.real_kafka

ORACLE = Path(__file__).parent / "java" / "PartitionChangeOracle.java"
CASES = 20_000
BROKERS = range(1, 7)


def some(rng, numbers):
    numbers = list(numbers)
    return tuple(rng.sample(numbers, rng.randint(0, len(numbers))))


def random_partition(rng, *, elr_enabled):
    replicas = tuple(rng.sample(BROKERS, rng.randint(1, 5)))
    isr = some(rng, replicas)
    if not isr and not elr_enabled:
        isr = replicas[:1]
    elr = some(rng, [r for r in replicas if r not in isr]) if elr_enabled else ()
    elr = tuple(sorted(elr))
    leader = rng.choice([NO_LEADER, *isr])
    known = some(rng, replicas)[:1] if elr_enabled and leader == NO_LEADER else ()
    reassigning = rng.random() < 0.3
    adding = some(rng, replicas) if reassigning else ()
    removing = some(rng, [r for r in replicas if r not in adding]) if reassigning else ()
    return PartitionState(
        replicas,
        isr,
        leader,
        leader_epoch=rng.randint(0, 9),
        partition_epoch=rng.randint(0, 9),
        elr=elr,
        last_known_elr=known,
        recovering=rng.random() < 0.2,
        adding_replicas=adding,
        removing_replicas=removing,
    )


def followers(partition):
    return [replica for replica in partition.replicas if replica != partition.leader]


def random_case(rng):
    """Return a partition and what the controller may ask for, in one of its ways."""
    elr_enabled = rng.random() < 0.7
    partition = random_partition(rng, elr_enabled=elr_enabled)
    options = {
        "live": some(rng, BROKERS),
        "min_isr": rng.randint(1, len(partition.replicas)),
        "elr_enabled": elr_enabled,
        "election": rng.choice(list(Election)),
    }
    targets = {}
    way = rng.choice(["elect", "leave", "unclean shutdown", "alter", "reassign"])
    broker = rng.choice(partition.replicas)
    if way in {"leave", "unclean shutdown"}:
        targets["target_isr"] = tuple(r for r in partition.isr if r != broker)
        options["live"] = tuple(r for r in options["live"] if r != broker)
    if way == "unclean shutdown":
        targets["unclean_shutdown_replica"] = broker
    if way == "alter" and partition.leader != NO_LEADER:
        # The leader proposes, itself in the ISR, and all members must be live.
        targets["target_isr"] = (partition.leader, *some(rng, followers(partition)))
        options["live"] = tuple({*options["live"], *targets["target_isr"]})
        targets["target_recovering"] = partition.recovering and rng.random() < 0.5
    if way == "reassign":
        wanted = tuple(rng.sample(BROKERS, rng.randint(1, 4)))
        removing = tuple(sorted(set(partition.replicas) - set(wanted)))
        targets["target_replicas"] = wanted + removing
        targets["target_removing"] = removing
        targets["target_adding"] = tuple(sorted(set(wanted) - set(partition.replicas)))
    return partition, options, targets


def text(value):
    match value:
        case None:
            return "keep"
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case Election():
            return value.name
        case _:
            return str(value)


def state_fields(state):
    return [
        state.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.elr,
        state.last_known_elr,
        state.recovering,
        state.adding_replicas,
        state.removing_replicas,
    ]


def line(partition, options, targets):
    names = ["live", "min_isr", "elr_enabled", "election"]
    asked = ["isr", "replicas", "adding", "removing", "recovering"]
    fields = [
        *state_fields(partition),
        *(options[name] for name in names),
        *(targets.get(f"target_{name}") for name in asked),
        targets.get("unclean_shutdown_replica"),
    ]
    return ";".join(map(text, fields))


def ours(partition, options, targets):
    live = options.pop("live")
    state = PartitionChangeBuilder(partition, live.__contains__, **options, **targets).build()
    return "none" if state is None else ";".join(map(text, state_fields(state)))


def without_nobody(answer):
    """Return the answer with -1 not counted as a last known leader."""
    fields = answer.split(";")
    if len(fields) > 1 and fields[6] == "-1":
        fields[6] = ""
    return ";".join(fields)


def test_kafka_builds_the_same_next_state(kafka_class_files):
    seed = int(os.environ.get("BROKER_SIM_SEED", random.SystemRandom().randrange(2**32)))
    rng = random.Random(seed)
    cases = [random_case(rng) for _ in range(CASES)]
    lines = [line(*case) for case in cases]
    done = subprocess.run(
        ["java", "-cp", f"{kafka_class_files}/*", str(ORACLE)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == CASES
    changed = 0
    for case, asked, theirs in zip(cases, lines, answers, strict=True):
        assert ours(*case) == without_nobody(theirs), f"seed {seed}: {asked}"
        changed += theirs != "none"
    assert changed > CASES // 2
