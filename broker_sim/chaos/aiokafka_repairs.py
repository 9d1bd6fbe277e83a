"""Repairs bugs of aiokafka, on which correct applications fail, for the duration of one run.

A program in examples/aiokafka_bugs shows each bug on a real Kafka. Methods of aiokafka's classes are replaced, and
restored after the run, so only one run at a time can be repaired.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from importlib import import_module
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from broker_sim.chaos.aiokafka_stable_offsets import StableOffsets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    Method = Callable[..., Any]
    AsyncMethod = Callable[..., Awaitable[Any]]

_COORDINATOR: Final = "aiokafka.consumer.group_coordinator"
REPAIRS: Final = MappingProxyType(
    {
        "offset_fetch_refused": "an OffsetFetch that is refused as a whole is retried",
        "list_offsets_not_leader": "ListOffsets to a broker that is not the leader requests new metadata",
        "stop_cancelled": "stop() of a consumer that leaves its group does not raise CancelledError",
        "stop_without_coordinator": "stop() of a consumer that knows no coordinator ends without a last commit",
        "metadata_without_pause": "metadata is requested at most once per retry_backoff_ms",
        "timeout_on_a_closed_connection": "a request that times out after its connection was replaced raises "
        "RequestTimedOutError",
        "metadata_without_brokers": "a client whose first metadata has no brokers raises KafkaConnectionError",
        "offsets_not_stable": "a consumer with isolation_level=read_committed requests stable offsets",
    }
)
"""Effects of the repairs, by the name of the program in examples/aiokafka_bugs that shows the bug."""


@contextmanager
def repaired_aiokafka(names: Iterable[str] = REPAIRS) -> Iterator[None]:
    """Apply these repairs (default: all) in the `with` block. Raises ImportError without aiokafka."""
    stable = StableOffsets()
    repairs: list[tuple[str, str, str, str, Callable[[Method], Method]]] = [
        ("offsets_not_stable", "aiokafka.consumer.fetcher", "Fetcher", "__init__", stable.wrap_fetcher_init),
        ("offsets_not_stable", _COORDINATOR, "GroupCoordinator", "_send_req", stable.wrap_send_req),
        ("offset_fetch_refused", _COORDINATOR, "GroupCoordinator", "_send_req", _raise_refusal),
        ("list_offsets_not_leader", "aiokafka.consumer.fetcher", "Fetcher", "_proc_offset_request", _request_metadata),
        ("stop_cancelled", _COORDINATOR, "GroupCoordinator", "_stop_heartbeat_task", _swallow_cancellation),
        (
            "stop_without_coordinator",
            _COORDINATOR,
            "GroupCoordinator",
            "ensure_coordinator_known",
            _require_coordinator,
        ),
        ("metadata_without_pause", "aiokafka.client", "AIOKafkaClient", "_metadata_update", _pause_requests),
        ("timeout_on_a_closed_connection", "aiokafka.client", "AIOKafkaClient", "send", _raise_timeout),
        ("metadata_without_brokers", "aiokafka.client", "AIOKafkaClient", "bootstrap", _require_brokers),
    ]
    names = set(names)
    replaced: list[tuple[type, str, Method]] = []
    try:
        for repair_name, module, class_name, name, repair in repairs:
            if repair_name not in names:
                continue
            owner = getattr(import_module(module), class_name)
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, repair(getattr(owner, name)))
        yield
    finally:
        for owner, name, method in reversed(replaced):
            setattr(owner, name, method)


def _raise_refusal(send_req: AsyncMethod) -> AsyncMethod:
    """Raise the error of a refused OffsetFetch, which aiokafka takes for "no committed offset"."""
    errors, commit = import_module("aiokafka.errors"), import_module("aiokafka.protocol.commit")

    async def _send_req(self: Any, request: Any) -> Any:
        response = await send_req(self, request)
        is_fetch = isinstance(request, commit.OffsetFetchRequest) and response.API_VERSION >= 2
        if is_fetch and response.error_code:
            error = errors.for_code(response.error_code)
            if error is errors.NotCoordinatorForGroupError:
                self.coordinator_dead()
            raise error
        return response

    return _send_req


def _request_metadata(proc_offset_request: AsyncMethod) -> AsyncMethod:
    """Request metadata when a broker is not the leader; aiokafka keeps asking it until the metadata expires."""
    errors = import_module("aiokafka.errors")

    async def _proc_offset_request(self: Any, node_id: int, topic_data: Any) -> Any:
        try:
            return await proc_offset_request(self, node_id, topic_data)
        except errors.KafkaError as error:
            if error.invalid_metadata:
                self._client.force_metadata_update()
            raise

    return _proc_offset_request


def _swallow_cancellation(stop_heartbeat_task: AsyncMethod) -> AsyncMethod:
    """Swallow the cancellation of a heartbeat task that was leaving the group."""

    async def _stop_heartbeat_task(self: Any) -> None:
        task, caller = self._heartbeat_task, asyncio.current_task()
        try:
            await stop_heartbeat_task(self)
        except asyncio.CancelledError:
            if not task.cancelled() or (caller is not None and caller.cancelling()):
                raise
            self._heartbeat_task = None

    return _stop_heartbeat_task


def _require_coordinator(ensure_coordinator_known: AsyncMethod) -> AsyncMethod:
    """Raise an error once the search for the coordinator has ended; aiokafka would retry a commit for ever."""
    errors = import_module("aiokafka.errors")

    async def _ensure_coordinator_known(self: Any) -> None:
        await ensure_coordinator_known(self)
        if self.coordinator_id is None:
            raise errors.KafkaError("the consumer is closed, and knows no coordinator")

    return _ensure_coordinator_known


def _pause_requests(metadata_update: AsyncMethod) -> AsyncMethod:
    """Wait before the next metadata request, which a producer sends without a pause while there is no leader."""
    requested_at_s: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    async def _metadata_update(self: Any, *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        next_s = requested_at_s.get(self, -inf) + self._retry_backoff
        if next_s > loop.time():
            await asyncio.sleep(next_s - loop.time())
        requested_at_s[self] = loop.time()
        return await metadata_update(self, *arguments)

    return _metadata_update


def _raise_timeout(send: AsyncMethod) -> AsyncMethod:
    """Raise RequestTimedOutError instead of KeyError if the connection to be closed is already gone."""
    errors = import_module("aiokafka.errors")

    async def _send(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return await send(self, *arguments, **options)
        except KeyError as error:
            if isinstance(error.__context__, TimeoutError):
                raise errors.RequestTimedOutError from error
            raise

    return _send


def _require_brokers(bootstrap: AsyncMethod) -> AsyncMethod:
    """Raise KafkaConnectionError if the response has no brokers, because all of them are fenced."""
    errors = import_module("aiokafka.errors")

    async def _bootstrap(self: Any) -> None:
        await bootstrap(self)
        if not self.cluster.brokers():
            await self.close()
            raise errors.KafkaConnectionError(f"No broker is known to {self.hosts}")

    return _bootstrap
