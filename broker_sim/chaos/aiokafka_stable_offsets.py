"""Makes read_committed consumers of aiokafka request stable offsets, as Java's consumers do (KIP-447).

aiokafka's newest OffsetFetch is version 3, which cannot do that: while a transaction is committing an offset, the
consumer gets the old one. The same happens for a moment after the group has moved to another coordinator whose
high watermark is behind, although the transaction is over.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from broker_sim.errors import ErrorCode
from broker_sim.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Method = Callable[..., Awaitable[Any]]

REQUIRE_STABLE_VERSION: Final = 7
RETRIED_ERROR: Final = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""An error that aiokafka retries, in place of UNSTABLE_OFFSET_COMMIT, which it does not know."""


class StableOffsets:
    """Tracks which clients read committed records; wraps a method of Fetcher and one of GroupCoordinator."""

    def __init__(self) -> None:
        self._readers: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()

    def wrap_fetcher_init(self, init: Callable[..., None]) -> Callable[..., None]:
        """Wrap `Fetcher.__init__`, which gets the isolation level."""

        def init_fetcher(fetcher: Any, client: Any, *arguments: Any, **options: Any) -> None:
            self._readers[client] = options.get("isolation_level") == "read_committed"
            init(fetcher, client, *arguments, **options)

        return init_fetcher

    def wrap_send_req(self, send_req: Method) -> Method:
        """Wrap `GroupCoordinator._send_req`: OffsetFetch requests then require stable offsets."""
        commit = import_module("aiokafka.protocol.commit")

        async def send_stable(coordinator: Any, request: Any) -> Any:
            is_fetch = isinstance(request, commit.OffsetFetchRequest)
            if not (is_fetch and self._readers.get(vars(coordinator)["_client"])):
                return await send_req(coordinator, request)
            fields = vars(request)
            stable = _request_type()(fields["_consumer_group"], fields["_partitions"])
            return _without_version(commit, await send_req(coordinator, stable))

        return send_stable


@cache
def _request_type() -> Any:
    """Return an aiokafka request class for OffsetFetch with `require_stable`."""
    api, types = import_module("aiokafka.protocol.api"), import_module("aiokafka.protocol.types")
    text, tags = types.CompactString("utf-8"), ("tags", types.TaggedFields)

    class OffsetFetchResponse_v7(api.Response):  # type: ignore[misc, name-defined]  # noqa: N801
        API_KEY = int(ApiKey.OFFSET_FETCH)
        API_VERSION = REQUIRE_STABLE_VERSION
        SCHEMA = types.Schema(
            ("throttle_time_ms", types.Int32),
            (
                "topics",
                types.CompactArray(
                    ("topic", text),
                    (
                        "partitions",
                        types.CompactArray(
                            ("partition", types.Int32),
                            ("offset", types.Int64),
                            ("leader_epoch", types.Int32),
                            ("metadata", text),
                            ("error_code", types.Int16),
                            tags,
                        ),
                    ),
                    tags,
                ),
            ),
            ("error_code", types.Int16),
            tags,
        )

    class OffsetFetchRequest_v7(api.RequestStruct):  # type: ignore[misc, name-defined]  # noqa: N801
        FLEXIBLE_VERSION = True
        API_KEY = int(ApiKey.OFFSET_FETCH)
        API_VERSION = REQUIRE_STABLE_VERSION
        RESPONSE_TYPE = OffsetFetchResponse_v7
        SCHEMA = types.Schema(
            ("consumer_group", text),
            ("topics", types.CompactArray(("topic", text), ("partitions", types.CompactArray(types.Int32)), tags)),
            ("require_stable", types.Boolean),
            tags,
        )

    class StableOffsetFetchRequest(api.Request[OffsetFetchRequest_v7]):  # type: ignore[misc, name-defined]
        API_KEY = int(ApiKey.OFFSET_FETCH)

        def __init__(self, group: str, partitions: list[tuple[str, list[int]]] | None) -> None:
            self._group, self._partitions = group, partitions

        def build(self, request_struct_class: Any) -> Any:
            requested = self._partitions
            tags: dict[int, bytes] = {}
            topics = None if requested is None else [(topic, indexes, tags) for topic, indexes in requested]
            return request_struct_class(self._group, topics, True, tags)

    return StableOffsetFetchRequest


def _without_version(commit: Any, response: Any) -> Any:
    """Return the response in a version that aiokafka knows; it retries the request if an offset is not stable."""
    topics = [
        (
            topic,
            [
                (partition, offset, metadata, RETRIED_ERROR if error == ErrorCode.UNSTABLE_OFFSET_COMMIT else error)
                for partition, offset, _, metadata, error, _ in partitions
            ],
        )
        for topic, partitions, _ in response.topics
    ]
    return commit.OffsetFetchResponse_v3(response.throttle_time_ms, topics, response.error_code)
