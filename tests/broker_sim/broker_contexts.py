"""A `BrokerContext` of broker 1 for parts that are tested alone; the test plays time, metadata, links and logs."""

from random import Random
from types import SimpleNamespace

from broker_sim.config import BrokerConfig
from broker_sim.coordinator.broker_context import BrokerContext
from broker_sim.protocol.release import find_release
from broker_sim.runtime.action_queue import ActionQueue


def broker_context(
    bench=None, *, clock=None, call_later=None, after_serving=None, run_beside=None, serve=None, config=None, **parts
):
    """Return the context; its metadata is `bench.image`, whatever that is at the moment."""
    process = SimpleNamespace(
        clock=clock,
        call_later=call_later,
        after_serving=after_serving,
        run_beside=run_beside,
        actions=SimpleNamespace(serve=serve or ActionQueue().serve),
    )
    defaults = {
        "broker_id": 1,
        "config": config or BrokerConfig(),
        "process": process,
        "logs": None,
        "metadata": bench,
        "random": Random(7),
        "links": bench,
        "broker_epoch": lambda: 0,
        "purgatory": None,
        "storage": None,
        "release": find_release(),
    }
    return BrokerContext(**{**defaults, **parts})
