"""`kill -9` at random moments under load, round after round on one directory.

Every record that was acknowledged (acks=all) must be there after every restart, in order and once. Ten
rounds; `KILL_ROUNDS=200 KILL_SEED=7` in the environment asks for more, or for the same moments again.
"""

import os
import random
import signal
import time

import pytest
from confluent_kafka import Producer

from .test_data_dir import PARTITIONS, TIMEOUT_S, Simulator, create_topic

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="kills")]

ROUNDS = int(os.environ.get("KILL_ROUNDS", "10"))
SEED = int(os.environ.get("KILL_SEED", str(random.randrange(1 << 32))))
LONGEST_LIFE_S = 0.4
OFTEN = ("log.flush.offset.checkpoint.interval.ms=20", "log.initial.task.delay.ms=0")
RECOVERY_POINTS = ((), tuple(word for config in OFTEN for word in ("--config", config)))
"""In a short life none is checkpointed by default; else only the last segments are recovered."""


@pytest.fixture
def simulator(tmp_path):
    simulator = Simulator(tmp_path / "data")
    yield simulator
    simulator.process.kill()
    simulator.process.communicate(timeout=TIMEOUT_S)


def write_until_killed(simulator, rng, round_number, acknowledged):
    """Write in a random rhythm, kill the process at a random moment, note what was acknowledged."""
    producer = simulator.client(Producer, **{"enable.idempotence": True, "linger.ms": rng.choice((0, 1, 5))})
    before = sum(map(len, acknowledged.values()))

    def delivered(error, message):
        if error is None:
            acknowledged[message.partition()].append(message.value())

    sent = 0
    end = None
    while end is None or time.monotonic() < end:
        if len(producer) < 500:
            value = b"%d-%d-%s" % (round_number, sent, b"x" * rng.randrange(500))
            producer.produce("topic", value, partition=sent % PARTITIONS, on_delivery=delivered)
            sent += 1
        producer.poll(0)
        if end is None and sum(map(len, acknowledged.values())) > before:
            end = time.monotonic() + rng.random() * LONGEST_LIFE_S
    simulator.end(signal.SIGKILL)
    producer.purge()  # the rest fails, or was acknowledged in the last moment
    producer.flush(TIMEOUT_S)


def test_acknowledged_records_survive_every_kill(simulator):
    print(f"KILL_SEED={SEED}")
    rng = random.Random(SEED)
    create_topic(simulator)
    acknowledged = {partition: [] for partition in range(PARTITIONS)}
    for round_number in range(ROUNDS):
        write_until_killed(simulator, rng, round_number, acknowledged)
        simulator.start(*rng.choice(RECOVERY_POINTS))
        found = simulator.read_to_the_end("topic", "read_committed")
        for partition, values in found.items():
            assert len(set(values)) == len(values), f"twice in round {round_number}"
            places = {value: place for place, value in enumerate(values)}
            missing = [value[:20] for value in acknowledged[partition] if value not in places]
            assert not missing, f"lost in round {round_number}: {missing[:5]}"
            order = [places[value] for value in acknowledged[partition]]
            assert order == sorted(order), f"out of order in round {round_number}"
    assert all(len(values) > ROUNDS for values in acknowledged.values())
