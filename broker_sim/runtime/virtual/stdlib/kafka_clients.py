"""Kafka's client libraries in virtual time: aiokafka is made deterministic, confluent-kafka is refused.

The installed libraries are not modified on disk, and behave as usual outside of virtual time.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from contextlib import nullcontext
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from broker_sim.runtime.virtual.loop import current_loop
from broker_sim.runtime.virtual.stdlib.sorted_sets import sort_sets_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from importlib.machinery import ModuleSpec
    from types import ModuleType

CONFLUENT_CLIENTS: Final = ("Producer", "Consumer", "_AdminClientImpl")
"""The C classes from which all other clients derive."""
CONFLUENT_ADVICE: Final = (
    "librdkafka cannot run on an event loop in virtual time, but in a process of its own it can: write this test with "
    '"def" in place of "async def", under the same marker, or start the application with '
    'kafka.start_program("python", "app.py")'
)


# -- preparing a module as soon as the program has imported it -------------------------------------


def when_imported(
    name: str,
    prepare: Callable[[Any], object] = lambda _: None,
    during: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Call `prepare(module)`: now if it is imported, else right after its import, which runs inside `during`."""
    module = sys.modules.get(name)
    if module is not None:
        prepare(module)
    elif not any(isinstance(each, _Finder) and each.name == name for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, prepare, during))


class _Finder:
    """Finds one module by means of the other finders, once."""

    def __init__(
        self, name: str, prepare: Callable[[Any], object], during: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.name = name
        self._prepare = prepare
        self._during = during

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return the spec of the module; None for all others."""
        del path, target
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._prepare, self._during)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(
        self,
        loader: importlib.abc.Loader,
        prepare: Callable[[Any], object],
        during: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._loader = loader
        self._prepare = prepare
        self._during = during

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        with self._during():
            return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with self._during():
            self._loader.exec_module(module)
        self._prepare(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # for the module's resources and source


# -- aiokafka --------------------------------------------------------------------------------------


def prepare_aiokafka() -> None:
    """Prepare aiokafka for one run, now or when the program imports it."""
    when_imported("aiokafka", _prepare_aiokafka)


def _prepare_aiokafka(aiokafka: Any) -> None:
    # aiokafka numbers unnamed clients over the whole process; a second run must not have other names.
    aiokafka.AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE = 0
    accumulator = aiokafka.producer.message_accumulator
    if getattr(accumulator.BatchBuilder.append, "is_of_virtual_time", False):
        return
    accumulator.BatchBuilder.append = _with_time(accumulator.BatchBuilder.append)
    accumulator.MessageBatch.__hash__ = _numbered_hash
    # Requests list partitions, and rebalances assign them, in the order of sets of topics and partitions.
    for name, module in [*sys.modules.items()]:
        if name.startswith("aiokafka."):
            sort_sets_of(module)
    versions = getattr(aiokafka.protocol.admin, "ApiVersionResponse_v0", None)
    if versions is not None:
        versions.decode = classmethod(_remembering(versions.SCHEMA))


def _with_time(append: Any) -> Any:
    """Set the time of records: the C extension would use the C library's real time."""

    def append_with_time(self: Any, *, timestamp: int | None, **rest: Any) -> Any:
        loop = current_loop()
        if timestamp is None and loop is not None:
            timestamp = loop.clock.wall_clock_ms()
        return append(self, timestamp=timestamp, **rest)

    append_with_time.is_of_virtual_time = True  # type: ignore[attr-defined]
    return append_with_time


def _remembering(schema: Any) -> Any:
    """Cache decoded responses: each new connection asks for the API versions, and all brokers answer the same."""

    @lru_cache(maxsize=16)
    def decoded(data: bytes) -> tuple[int, tuple[Any, ...]]:
        error_code, apis = schema.decode(BytesIO(data))
        return error_code, tuple(apis)

    def decode(response: Any, data: BytesIO | bytes) -> Any:
        error_code, apis = decoded(data if isinstance(data, bytes) else data.read())
        return response(error_code, list(apis))

    return decode


def _numbered_hash(batch: Any) -> int:
    """Return a number as a batch's hash: a failing sender iterates a set of batches."""
    number: int | None = getattr(batch, "_virtual_number", None)
    if number is None:
        loop = current_loop()
        number = object.__hash__(batch) if loop is None else loop.core.next_number()
        batch._virtual_number = number
    return number


# -- confluent-kafka -------------------------------------------------------------------------------


def refuse_confluent_kafka() -> None:
    """Make the constructors of confluent-kafka's clients raise EscapeError in virtual time.

    Their threads and sockets belong to librdkafka, a C library: they would look for a broker on the real network in
    real time, and the program would only see that nothing is delivered. To be called before the program imports
    confluent_kafka: names imported earlier cannot be replaced.
    """
    when_imported("confluent_kafka.cimpl", _prepare_confluent_kafka)


def _prepare_confluent_kafka(cimpl: Any) -> None:
    for name in CONFLUENT_CLIENTS:
        client = getattr(cimpl, name)
        if not getattr(client, "refuses_virtual_time", False):
            setattr(cimpl, name, _refusing(client))


def _refusing(client: Any) -> type[Any]:
    """Return a subclass that refuses virtual time: C classes cannot be changed."""

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        loop = current_loop()
        if loop is not None:
            loop.refuse(f"confluent_kafka.{type(self).__name__}: {CONFLUENT_ADVICE}")
        client.__init__(self, *args, **kwargs)

    members = {
        "__init__": start,
        "__doc__": client.__doc__,
        "__module__": client.__module__,
        "__slots__": (),
        "refuses_virtual_time": True,
    }
    return type(client.__name__, (client,), members)
