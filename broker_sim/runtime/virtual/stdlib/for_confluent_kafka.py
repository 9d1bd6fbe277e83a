"""Refuses clients of confluent-kafka in virtual time, where they are made.

Their threads and sockets are those of librdkafka, a library in C: they look for a broker on the real network, in
real time, and all that a program would see is that nothing is delivered.
"""

from __future__ import annotations

from typing import Any, Final

from broker_sim.runtime.virtual.loop import current_loop
from broker_sim.runtime.virtual.stdlib.importing import when_imported

CLIENTS: Final = ("Producer", "Consumer", "_AdminClientImpl")
"""The classes in C, from which all others are made."""
ADVICE: Final = (
    "librdkafka runs in real time, on the real network; use aiokafka here, or test it with the fixture kafka in a "
    "test that is not marked virtual_time"
)


def refuse_confluent_kafka() -> None:
    """Refuse its clients in virtual time from now on; elsewhere nothing changes.

    It must be called before the program imports confluent_kafka: a name that was taken before cannot be replaced.
    """
    when_imported("confluent_kafka.cimpl", _prepare)


def _prepare(cimpl: Any) -> None:
    for name in CLIENTS:
        client = getattr(cimpl, name)
        if not getattr(client, "refuses_virtual_time", False):
            setattr(cimpl, name, _refusing(client))


def _refusing(client: Any) -> type[Any]:
    """Return a class that does the same outside of virtual time: those in C cannot be changed."""

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        loop = current_loop()
        if loop is not None:
            loop.refuse(f"confluent_kafka.{type(self).__name__}: {ADVICE}")
        client.__init__(self, *args, **kwargs)

    members = {
        "__init__": start,
        "__doc__": client.__doc__,
        "__module__": client.__module__,
        "__slots__": (),
        "refuses_virtual_time": True,
    }
    return type(client.__name__, (client,), members)
