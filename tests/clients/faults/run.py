"""A cluster in a process of its own, clients beside it, a schedule of faults, and then everything mended."""

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from broker_sim.cluster.verbs import Verbs
from broker_sim.control.client import ControlClient, ControlError
from broker_sim.control.verb import verbs_of

from .schedule import BROKERS, PARTITIONS, TOPICS, Call, draw_schedule
from .workload import Copier, IdempotentProducer, PairProducer, Reader

CONFIGS = {
    "broker.session.timeout.ms": 3_000,
    "broker.heartbeat.interval.ms": 500,
    "replica.lag.time.max.ms": 4_000,
    "offsets.topic.num.partitions": PARTITIONS,
    "transaction.state.log.num.partitions": PARTITIONS,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
    "group.initial.rebalance.delay.ms": 500,
    "min.insync.replicas": 2,
}
SESSION_MS = 6_000
SOCKET_TIMEOUT_MS = TRANSACTION_TIMEOUT_MS = 10_000
END_TIMEOUT_S = 120
VERBS = verbs_of(Verbs)


class Settings(NamedTuple):
    """How long, how many faults, from which seed; `debug` is librdkafka's."""

    seed: int
    seconds: float = 600
    steps: int = 168
    debug: str = ""


class Simulator:
    """`broker-sim run` on a data directory."""

    def __init__(self, directory, log, command=(sys.executable, "-P", "-m", "broker_sim")):
        options = [f"--data-dir={directory}", "--until-stdin-closes", "--log-level=info"]
        options += [f"--topic={topic}:{PARTITIONS}:3" for topic in TOPICS]
        options += [f"--config={key}={value}" for key, value in CONFIGS.items()]
        self.process = subprocess.Popen(
            [*command, "run", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
        line = self.process.stdout.readline()
        assert line, f"it did not start: exit code {self.process.wait(END_TIMEOUT_S)}"
        ready = json.loads(line)
        self.bootstrap_servers = ready["bootstrap_servers"]
        self.control = ControlClient(ready["control"])

    def call(self, call):
        """Call a verb; returns the answer. Raises ControlError where it does not fit the state."""
        return self.control.request(*VERBS[call.verb].request(call.arguments))

    def kill(self):
        """End the process with SIGKILL."""
        self.process.kill()
        self.close()

    def close(self):
        """Let it end."""
        self.process.stdin.close()
        self.process.wait(END_TIMEOUT_S)
        self.process.stdout.close()


class Run:
    """One run: `play` the schedule, `mend`, wait until all clients go on, `stop` them."""

    def __init__(self, settings, simulator):
        self.settings = settings
        self.simulator = simulator
        self.schedule = draw_schedule(settings.seed, steps=settings.steps, duration_ms=int(settings.seconds * 1000))
        self.refused = []
        """Steps that did not fit the cluster's state."""
        common = {
            "bootstrap.servers": simulator.bootstrap_servers,
            "socket.timeout.ms": SOCKET_TIMEOUT_MS,
            "reconnect.backoff.max.ms": 1_000,
            "log_level": 3,
        }
        if settings.debug:
            common |= {"debug": settings.debug, "log_level": 7}
        seed = settings.seed
        transactional = {"timeout_ms": TRANSACTION_TIMEOUT_MS}
        self.producers = [IdempotentProducer(f"writer-{n}", common, seed, rate=100) for n in "12"]
        self.pairs = [PairProducer(f"pair-{n}", common, seed, **transactional) for n in "12"]
        self.copiers = [Copier(f"copier-{n}", common, seed, session_ms=SESSION_MS, **transactional) for n in "12"]
        self.reader = Reader("reader", common, seed, topics=["output", "pairs"])
        self.clients = [*self.producers, *self.pairs, *self.copiers, self.reader]

    def play(self):
        """Let the clients work, and do what the schedule says at its times."""
        for client in self.clients:
            client.start()
        started = time.monotonic()
        with ThreadPoolExecutor(32) as pool:
            moments = []
            for step in self.schedule:
                moments.append((step.at_ms, step, step.do))
                if step.undo is not None:
                    moments.append((step.at_ms + step.for_ms, step, step.undo))
            injected = {}
            for at_ms, step, call in sorted(moments, key=lambda moment: moment[0]):
                time.sleep(max(0, started + at_ms / 1000 - time.monotonic()))
                pool.submit(self._call, step, call, injected)
            time.sleep(max(0, started + self.settings.seconds - time.monotonic()))

    def _call(self, step, call, injected):
        try:
            if call.verb == "heal":
                call = Call("heal", {"fault_id": injected[step]})
            answer = self.simulator.call(call)
            if call.verb == "inject":
                injected[step] = answer["id"]
        except (ControlError, KeyError) as error:
            self.refused.append((step, call.verb, str(error)))

    def mend(self):
        """End every fault, start every broker, and wait until all replicas are in sync."""
        call = self.simulator.call
        call(Call("heal", {}))
        for source in BROKERS:
            for target in BROKERS:
                if source != target:
                    call(Call("set_link", {"source": source, "target": target}))
        for broker in BROKERS:
            state = call(Call("broker", {"broker_id": broker}))
            if state["state"] == "paused":
                call(Call("resume", {"broker_id": broker}))
            elif state["state"] == "dead":
                call(Call("start", {"broker_id": broker}))
            call(Call("reconnect", {"broker_id": broker}))
            call(Call("reconnect_clients", {"broker_id": broker}))
        call(Call("wait_until_in_sync", {"timeout_s": 60}))

    def wait_until_all_go_on(self, bound_s, times=3):
        """Return the clients that have not done anything `times` more within the bound."""
        end = time.monotonic() + bound_s
        goal = {client: client.done + times for client in self.clients}
        while True:
            waiting = [client for client, done in goal.items() if client.done < done]
            over = time.monotonic() > end or any(client.crash for client in self.clients)
            if not waiting or over:
                return waiting
            waiting[0].join(0.05)

    def jolt(self):
        """Restart a broker, so that clients see that the state of a connection changes."""
        self.simulator.call(Call("stop", {"broker_id": BROKERS[0]}))
        self.simulator.call(Call("start", {"broker_id": BROKERS[0]}))
        self.simulator.call(Call("wait_until_in_sync", {"timeout_s": 60}))

    def request_timeouts(self):
        """Return how many requests each client has given up so far."""
        return {client.name: client.request_timeouts for client in self.clients}

    def wait_until_copied(self, bound_s):
        """Let nothing more be written; returns how much of it is not copied within the bound."""
        for client in self.producers + self.pairs:
            client.stop()
        end = time.monotonic() + bound_s
        for client in self.producers + self.pairs:
            client.join(max(0, end - time.monotonic()))
        while True:
            lag = self.simulator.call(Call("group", {"group_id": "copiers"}))["lag"]
            if not lag or time.monotonic() > end:
                return lag
            self.reader.join(0.2)

    def requests_when_idle(self):
        """Return the requests of two seconds in which nothing is written."""
        self.simulator.call(Call("keep_requests", {"count": 10_000}))
        self.reader.join(2)
        return self.simulator.call(Call("requests", {}))["requests"]

    def stop(self, bound_s=60):
        """Let all clients end; returns those that have not within the bound."""
        end = time.monotonic() + bound_s
        for client in self.clients:
            client.stop()
        for client in self.clients:
            client.join(max(0, end - time.monotonic()))
        return [client for client in self.clients if client.is_alive()]


def describe(run):
    """Return what is known of a run whose clients stand still: theirs, groups, transactions, what is parked."""
    call = run.simulator.call
    lines = [
        f"{client.name}: done {client.done}, at {client.at}, crash {client.crash!r}, "
        f"errors {dict(client.errors)}, {getattr(client, 'assignments', [])[-6:]}"
        for client in run.clients
    ]
    status = call(Call("status", {}))
    lines += [f"group {group}" for group in status["groups"]]
    lines += [f"transaction {transaction}" for transaction in status["transactions"]]
    for broker in call(Call("purgatory", {}))["brokers"]:
        for purgatory in broker["purgatories"]:
            lines += [f"broker {broker['id']} {purgatory['name']}: {parked}" for parked in purgatory["parked"]]
    return lines
