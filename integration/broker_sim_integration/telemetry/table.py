"""The cases, each a function that returns its observations."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.compression import CompressionCodec, compress
from broker_sim_integration.case_connection import Connection, eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

RECORDING: Final = Path(__file__).with_name("recorded.jsonl")
"""The observations on a real broker."""
MAX_BYTES: Final = 4_096
CONFIGS: Final = {
    "metric.reporters": "example.Telemetry",
    "telemetry.max.bytes": str(MAX_BYTES),
    "offsets.topic.replication.factor": "1",
}
"""Configurations of the broker."""
CLIENT_METRICS: Final = 16
"""The type of the resource that is a subscription."""
INTERVAL_MS: Final = 1_000
LONG_MS: Final = 600_000
"""An interval that does not end while a case is played."""
PRODUCER, CONSUMER = "org.apache.kafka.producer.", "org.apache.kafka.consumer."
NOBODY: Final = bytes(16)
RESERVED: Final = bytes(15) + b"\1"
UNKNOWN_CODEC: Final = 9
HALF: Final = MAX_BYTES // 2


def _field(number: int, content: bytes) -> bytes:
    """Return a field of a protobuf message with bytes in it, fewer than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def _metrics(name: bytes) -> bytes:
    """Return OpenTelemetry's `MetricsData` with one number."""
    point = bytes([4 << 3 | 1]) + struct.pack("<d", 3.0)
    return _field(1, _field(2, _field(2, _field(1, name) + _field(7, _field(1, point)))))


METRICS: Final = _metrics(b"org.apache.kafka.producer.connection.creation.total")
LARGE: Final = METRICS * (MAX_BYTES // len(METRICS) + 1)
"""Valid metrics that are larger than a broker accepts."""


class Client:
    """A client instance with an id of its own, which its subscription id depends on."""

    def __init__(self, connection: Connection, instance_id: bytes) -> None:
        self.connection = connection
        self.instance_id = instance_id
        self.subscription_id = 0

    @classmethod
    async def open(cls, address: tuple[str, int], number: int, software: tuple[str, str] | None) -> Client:
        """Connect; send name and version of the client library, if given (KIP-511)."""
        connection = await Connection.open(address)
        if software is not None:
            await connection.ask(messages.ApiVersionsRequest(*software), 3)
        return cls(connection, bytes([*range(1, 16), number]))

    async def get(self, instance_id: bytes | None = None) -> list[Any]:
        """Get the subscription; return its fields, without those of an error."""
        request = messages.GetTelemetrySubscriptionsRequest(self.instance_id if instance_id is None else instance_id)
        got = await self.connection.ask(request, 0)
        if got.error_code:
            return [ErrorCode(got.error_code).name, got.requested_metrics, got.push_interval_ms, got.subscription_id]
        self.subscription_id = got.subscription_id
        kept = got.client_instance_id == request.client_instance_id
        return [
            "id kept" if kept else "id given",
            got.subscription_id if kept else "depends on the id",
            sorted(got.requested_metrics),
            got.push_interval_ms,
            list(got.accepted_compression_types),
            got.telemetry_max_bytes,
            got.delta_temporality,
        ]

    async def push(self, metrics: bytes = METRICS, **changes: Any) -> str:
        """Push metrics; return the error."""
        fields = {
            "client_instance_id": self.instance_id,
            "subscription_id": self.subscription_id,
            "metrics": metrics,
            **changes,
        }
        answer = await self.connection.ask(messages.PushTelemetryRequest(**fields), 0)
        return ErrorCode(answer.error_code).name

    async def sees(self, text: str) -> None:
        """Wait until the subscriptions have reached the broker: a new instance gets the metrics `text`."""

        async def metrics() -> str:
            answer = await self.connection.ask(messages.GetTelemetrySubscriptionsRequest(NOBODY), 0)
            return ",".join(sorted(answer.requested_metrics))

        assert await eventually(metrics, lambda seen: seen == text, 10) == text


class Cases:
    """A broker and the clients of one case."""

    def __init__(self, address: tuple[str, int], case: str) -> None:
        self._address = address
        self._clients: list[Client] = []
        self._first = INSTANCES_OF_A_CASE * list(TABLE).index(case)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.connection.close()

    async def subscribe(self, name: str = "all", **configs: str | None) -> list[Any]:
        """Set configurations of a subscription; return error and text."""
        connection = await Connection.open(self._address)
        try:
            return await connection.alter(CLIENT_METRICS, name, {k.replace("_", "."): v for k, v in configs.items()})
        finally:
            connection.close()

    async def client(self, software: tuple[str, str] | None = ("library", "1.2")) -> Client:
        """Return a new client."""
        client = await Client.open(self._address, self._first + len(self._clients), software)
        self._clients.append(client)
        return client

    async def subscribed(self, interval_ms: int = LONG_MS) -> Client:
        """Return a client of a subscription to all metrics of producers."""
        assert (await self.subscribe(metrics=PRODUCER, interval_ms=str(interval_ms)))[0] == "NONE"
        client = await self.client()
        await client.sees(PRODUCER)
        return client


async def no_subscription(cases: Cases) -> list[Any]:
    """Get and push without any subscription, also for reserved instance ids."""
    client = await cases.client()
    return [
        await client.get(NOBODY),
        await client.get(RESERVED),
        await client.get(),
        await client.push(),
        await client.push(b""),
    ]


async def configurations(cases: Cases) -> list[Any]:
    """Set valid and invalid configurations of subscriptions."""
    return [
        await cases.subscribe(metrics=PRODUCER, interval_ms="99"),
        await cases.subscribe(interval_ms="3600001"),
        await cases.subscribe(interval_ms="soon"),
        await cases.subscribe(match="client_id"),
        await cases.subscribe(match="colour=.*"),
        await cases.subscribe(match="client_id=("),
        await cases.subscribe(colour="red"),
        await cases.subscribe("", metrics=PRODUCER),
        await cases.subscribe(interval_ms="100", match="client_id=app.*,client_software_name=lib"),
        await cases.subscribe(interval_ms=None, match=None),
    ]


async def all_that_match(cases: Cases) -> list[Any]:
    """Get the metrics of all subscriptions that match, with the shortest interval of them."""
    await cases.subscribe("first", metrics=f"{PRODUCER},{CONSUMER}", interval_ms="5000")
    await cases.subscribe("second", metrics="a.", interval_ms="4000", match="client_software_name=lib.*")
    await cases.subscribe("third", metrics="b.", interval_ms="3000", match="client_software_name=lib")
    await cases.subscribe(
        "fourth", metrics="c.", interval_ms="2000", match="client_software_version=1.2, client_id=sh.p"
    )
    await cases.subscribe("fifth", metrics="d.", interval_ms="1500", match="client_source_address=127.0.0.1")
    client = await cases.client()
    await client.sees(",".join(sorted(("a.", "c.", "d.", CONSUMER, PRODUCER))))
    unnamed = await cases.client(None)
    return [
        (await client.get())[2:4],
        (await unnamed.get())[2:4],
        (await (await cases.client(("lib", "3"))).get())[2:4],
    ]


async def one_metric(cases: Cases) -> list[Any]:
    """Get ids of subscriptions, which depend on instance, metrics and interval."""
    client = await cases.subscribed()
    seen: list[Any] = [await client.get(), await (await cases.client()).get()]
    await cases.subscribe(metrics="*", interval_ms="100")
    await client.sees("*")
    return [*seen, await client.get()]


async def all_metrics_beside_some(cases: Cases) -> list[Any]:
    """Subscribe to all metrics and to some."""
    await cases.subscribe("some", metrics=PRODUCER)
    await cases.subscribe("all", metrics=f"{CONSUMER},*")
    client = await cases.client()
    await client.sees("*")
    return [await client.get()]


async def too_early(cases: Cases) -> list[Any]:
    """Get and push before the interval has passed."""
    client = await cases.subscribed()
    return [
        await client.get(),
        await client.get(),
        await client.push(),
        await client.push(),
        await client.get(),
        await client.push(subscription_id=client.subscription_id + 1),
    ]


async def in_time(cases: Cases) -> list[Any]:
    """Push once in each interval."""
    client = await cases.subscribed(INTERVAL_MS)
    seen: list[Any] = [await client.get(), await client.push()]
    await asyncio.sleep(1.2 * INTERVAL_MS / 1_000)
    seen += [await client.push(), await client.push()]
    await asyncio.sleep(1.2 * INTERVAL_MS / 1_000)
    return [*seen, await client.get(), await client.push()]


async def without_a_get(cases: Cases) -> list[Any]:
    """Push with no get before, and with ids that no instance has."""
    await cases.subscribed()
    client = await cases.client()
    return [
        await client.push(),
        await client.push(),
        await client.push(client_instance_id=NOBODY),
        await client.push(client_instance_id=RESERVED),
    ]


async def another_subscription(cases: Cases) -> list[Any]:
    """Push with a wrong id of the subscription, and get it again at once."""
    client = await cases.subscribed()
    seen: list[Any] = [await client.get(), await client.push(subscription_id=client.subscription_id + 1)]
    return [*seen, await client.get(), await client.push()]


async def changed_subscriptions(cases: Cases) -> list[Any]:
    """Change the subscriptions between get and push."""
    client = await cases.subscribed()
    seen: list[Any] = [await client.get(), await client.push()]
    await cases.subscribe("more", metrics=CONSUMER, interval_ms=str(INTERVAL_MS))
    await client.sees(f"{CONSUMER},{PRODUCER}")
    seen += [await client.push(), (await client.get())[2:4], await client.push()]
    await asyncio.sleep(1.2 * INTERVAL_MS / 1_000)
    return [*seen, await client.push()]


async def codecs(cases: Cases) -> list[Any]:
    """Push with every codec, and with an unknown one."""
    await cases.subscribed()
    seen: list[Any] = []
    for codec in CompressionCodec:
        client = await cases.client()
        await client.get()
        packed = METRICS if codec is CompressionCodec.NONE else compress(codec, METRICS)
        seen.append([codec.name, await client.push(packed, compression_type=codec)])
    client = await cases.client()
    await client.get()
    refused = await client.push(compression_type=UNKNOWN_CODEC)
    return [*seen, refused, await client.get(), await client.push()]


async def invalid_metrics(cases: Cases) -> list[Any]:
    """Push bytes that are no metrics, or that cannot be decompressed."""
    await cases.subscribed()
    seen = []
    for metrics, codec in (
        (b"", CompressionCodec.NONE),
        (b"\x0a\x7f", CompressionCodec.NONE),
        (b"no metrics", CompressionCodec.NONE),
        (b"", CompressionCodec.GZIP),
        (METRICS, CompressionCodec.GZIP),
        (METRICS, CompressionCodec.ZSTD),
        (METRICS, CompressionCodec.LZ4),
        (METRICS, CompressionCodec.SNAPPY),
        (compress(CompressionCodec.GZIP, METRICS)[:-9], CompressionCodec.GZIP),
    ):
        client = await cases.client()
        await client.get()
        seen.append([len(metrics), codec.name, await client.push(metrics, compression_type=codec)])
    return seen


async def large_metrics(cases: Cases) -> list[Any]:
    """Push more bytes than `telemetry.max.bytes`, compressed and not."""
    await cases.subscribed()
    seen = []
    fitting = LARGE[: len(METRICS) * (MAX_BYTES // len(METRICS))]
    for metrics, codec in (
        (fitting, CompressionCodec.NONE),
        (LARGE, CompressionCodec.NONE),
        (compress(CompressionCodec.GZIP, LARGE), CompressionCodec.GZIP),
        (compress(CompressionCodec.ZSTD, LARGE * 9), CompressionCodec.ZSTD),
    ):
        client = await cases.client()
        await client.get()
        seen.append([codec.name, await client.push(metrics, compression_type=codec)])
    return seen


async def terminating(cases: Cases) -> list[Any]:
    """Push for the last time, early, and once more after it."""
    client = await cases.subscribed()
    return [
        await client.get(),
        await client.push(),
        await client.push(terminating=True),
        await client.push(terminating=True),
        await client.push(),
        await client.get(),
    ]


async def last_push_that_is_refused(cases: Cases) -> list[Any]:
    """Push for the last time with a wrong id of the subscription."""
    client = await cases.subscribed()
    refused: dict[str, Any] = {"terminating": True, "subscription_id": 1}
    return [await client.get(), await client.push(**refused), await client.push(), await client.get()]


TABLE: Final[dict[str, Callable[[Cases], Awaitable[list[Any]]]]] = {
    play.__name__.replace("_", " "): play
    for play in (
        no_subscription,
        configurations,
        all_that_match,
        one_metric,
        all_metrics_beside_some,
        too_early,
        in_time,
        without_a_get,
        another_subscription,
        changed_subscriptions,
        codecs,
        invalid_metrics,
        large_metrics,
        terminating,
        last_push_that_is_refused,
    )
}
"""The cases by name."""
INSTANCES_OF_A_CASE: Final = 16
SUBSCRIPTIONS: Final = ("all", "some", "more", "first", "second", "third", "fourth", "fifth")


async def play(address: tuple[str, int], case: str) -> list[Any]:
    """Return the observations of a case on the broker at that address; its subscriptions end with it."""
    cases = Cases(address, case)
    try:
        seen = await TABLE[case](cases)
        for name in SUBSCRIPTIONS:
            await cases.subscribe(name, metrics=None, interval_ms=None, match=None)
        await (await cases.client()).sees("")
        return seen
    finally:
        cases.close()
