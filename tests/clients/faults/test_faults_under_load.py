"""Clients of librdkafka go on through brokers that die, hang and move, and nothing is lost or twice.

`FAULT_SECONDS`, `FAULTS` and `FAULT_SEED` in the environment say how long, how many faults, and which ones: the
seed gives the same schedule again, though not the same run. `FAULT_DEBUG=eos,cgrp,protocol` has librdkafka say
on stderr what it does.
"""

import os
import random
import time

import pytest

from .checks import (
    check_acknowledged,
    check_answered,
    check_copied,
    check_ended,
    check_pairs,
    read_to_the_end,
    used_again,
)
from .run import SOCKET_TIMEOUT_MS, Run, Settings, Simulator, describe
from .schedule import Call

pytestmark = [pytest.mark.clients, pytest.mark.soak(part="faults")]

SECONDS = float(os.environ.get("FAULT_SECONDS", "40"))
FAULTS = int(os.environ.get("FAULTS", str(round(SECONDS * 0.28))))
SEED = int(os.environ.get("FAULT_SEED", str(random.randrange(1 << 32))))
GO_ON_WITHIN_S = 60
ANSWER_WITHIN_MS = 1_000
"""More than the 500 ms for which a consumer lets a fetch wait."""
HANGS_IN = "send_offsets_to_transaction"


@pytest.fixture
def run(tmp_path):
    with (tmp_path / "broker.log").open("wb") as log:
        simulator = Simulator(tmp_path / "data", log)
        run = Run(Settings(SEED, SECONDS, FAULTS, os.environ.get("FAULT_DEBUG", "")), simulator)
        try:
            yield run
        finally:
            for client in run.clients:
                client.stop()
            simulator.kill()


def go_on(run):
    """All clients go on by themselves, but for one that librdkafka has forgotten (docs/recipes/transactions.md)."""
    waiting = run.wait_until_all_go_on(GO_ON_WITHIN_S)
    if any(client.at == HANGS_IN and client.crash is None for client in waiting):
        print(f"{waiting} stand still in librdkafka: a broker is restarted")
        run.jolt()
        waiting = run.wait_until_all_go_on(GO_ON_WITHIN_S)
    assert not waiting, "\n".join(["these stand still:", *map(str, waiting), *describe(run)])


def test_nothing_is_lost_or_twice_and_nobody_stands_still(run):
    print(f"FAULT_SEED={SEED} FAULT_SECONDS={SECONDS:g} FAULTS={FAULTS}")
    print(*run.schedule, sep="\n")
    run.play()
    print("not done:", *run.refused, sep="\n")
    run.mend()
    settled = time.monotonic() + 1.2 * SOCKET_TIMEOUT_MS / 1000
    go_on(run)
    # What was lost while there were faults is given up by now, and what is sent from now on is answered.
    run.reader.join(max(0, settled - time.monotonic()))
    before = run.request_timeouts()
    run.reader.join(1.2 * SOCKET_TIMEOUT_MS / 1000)
    go_on(run)
    assert run.wait_until_copied(GO_ON_WITHIN_S) == 0, "\n".join(describe(run))
    requests = run.requests_when_idle()
    until_ms = max(each["received_ms"] for each in requests) - ANSWER_WITHIN_MS
    assert run.request_timeouts() == before, "\n".join(describe(run))
    assert not run.stop(), "\n".join(describe(run))

    servers, status = run.simulator.bootstrap_servers, run.simulator.call(Call("status", {}))
    read, written, pairs = (read_to_the_end(servers, topic) for topic in ("input", "output", "pairs"))
    excused = used_again(run.copiers, written, read_to_the_end(servers, "output", "read_uncommitted"))
    excused |= used_again(run.pairs, pairs, read_to_the_end(servers, "pairs", "read_uncommitted"))
    print(f"{len(excused)} records lost by librdkafka: {sorted(excused)}")
    wrong = check_answered(requests, received_before_ms=until_ms)
    wrong += check_ended(status) + check_copied(read, written, excused)
    for producer in run.producers:
        wrong += check_acknowledged(producer, read)
    for client in run.pairs:
        wrong += check_pairs(client, pairs, excused)
    print({client.name: (client.done, dict(client.errors)) for client in run.clients})
    assert not wrong, "\n".join(wrong)
    assert all(client.done > FAULTS for client in run.clients)
