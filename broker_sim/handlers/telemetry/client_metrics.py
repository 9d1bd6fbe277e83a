"""The clients that push metrics to a broker, and their subscriptions; mirrors `ClientMetricsManager`.

A client requests its subscription, and then pushes metrics once per interval. The last pushes of all clients are
stored in the cluster's `ClientMetricsLog`, which takes the place of the plugin (`metric.reporters`) that a real
broker needs.

Deliberate differences: the metrics of a subscription, and in its id, are sorted by name; Kafka uses the order of a
hash table.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.config import CLIENT_METRICS_CONFIGS
from broker_sim.controller import ConfigResourceType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.telemetry.otlp import ClientMetric, parse_metrics
from broker_sim.protocol.compression import CompressionCodec, decompress
from broker_sim.protocol.crc32c import crc32c
from broker_sim.protocol.uuids import uuid_text, version_4

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage

ACCEPTED_CODECS: Final = (
    CompressionCodec.ZSTD,
    CompressionCodec.LZ4,
    CompressionCodec.GZIP,
    CompressionCodec.SNAPPY,
)
INTERVAL_MS: Final = 300_000
ALL_METRICS: Final = "*"
LIMIT: Final = 16_384
"""Maximum number of client instances per broker, and of client instances whose metrics are stored."""
EXPIRY_MS: Final = 60_000
INTERVALS_TO_EXPIRY: Final = 3
NO_ID: Final = bytes(16)
"""The id that a client without an id sends."""
RESERVED: Final = (NO_ID, bytes(15) + b"\x01")
"""Ids with which no client can push; as in Kafka, a client that sends the second one gets it for its own."""
MAX_BYTES_CONFIG: Final = "telemetry.max.bytes"
DEFAULT_MAX_BYTES: Final = "1048576"


class Subscription(NamedTuple):
    """The metrics that a client shall push."""

    metrics: tuple[str, ...]
    """Prefixes of metric names, or `*` for all; empty for no metrics."""
    interval_ms: int


class PushingClient(NamedTuple):
    """The client of a request."""

    client_id: str | None
    software: tuple[str, str]
    """Name and version of the client's library."""
    peer: str
    """The client's address and port."""
    when_lost: Callable[[Callable[[], object]], None]
    """Registers a function to call when the client's connection closes."""


@dataclass(slots=True)
class _Instance:
    """The state of a client instance at one broker."""

    labels: Mapping[str, str]
    subscriptions: Mapping[tuple[int, str], Mapping[str, str]]
    """The configurations from which the subscription was made."""
    subscription: Subscription
    subscription_id: int
    expires_ms: int = 0
    last_get_ms: int | None = None
    last_push_ms: int | None = None
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class ClientMetricsStatus:
    """The last metrics of one client instance."""

    client_instance_id: str
    client_id: str | None
    software: str
    """Name and version, such as `librdkafka 2.16.0`."""
    broker: int
    """Id of the broker that received the last push."""
    subscription: tuple[str, ...]
    interval_ms: int
    pushes: int
    terminated: bool
    """Whether the last push was the terminating one."""
    metrics: tuple[ClientMetric, ...] = field(default=(), repr=False)

    def value(self, name: str) -> float | None:
        """Return the sum of the metric's values, None if there are none."""
        values = [metric.value for metric in self.metrics if metric.name == name]
        return sum(values) if values else None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "metrics"}
        return {**values, "metrics": [metric.to_json() for metric in self.metrics]}


class ClientMetricsLog:
    """The last metrics of each client instance of a cluster. Thread rule: the cluster's event loop."""

    def __init__(self) -> None:
        self._statuses: OrderedDict[bytes, ClientMetricsStatus] = OrderedDict()

    def add(
        self,
        broker_id: int,
        client: PushingClient,
        instance_id: bytes,
        subscription: Subscription,
        metrics: list[ClientMetric],
        *,
        terminated: bool,
    ) -> None:
        """Replace the client instance's metrics with those of a push."""
        before = self._statuses.pop(instance_id, None)
        self._statuses[instance_id] = ClientMetricsStatus(
            uuid_text(instance_id),
            client.client_id,
            " ".join(client.software),
            broker_id,
            subscription.metrics,
            subscription.interval_ms,
            1 if before is None else before.pushes + 1,
            terminated,
            tuple(metrics) or (() if before is None else before.metrics),
        )
        if len(self._statuses) > LIMIT:
            self._statuses.popitem(last=False)

    def forget(self) -> None:
        """Drop all metrics."""
        self._statuses.clear()

    def statuses(self) -> tuple[ClientMetricsStatus, ...]:
        """Return the last metrics of all client instances, ordered by their last push."""
        return tuple(self._statuses.values())


class ClientMetricsManager:
    """The client instances of one broker. Thread rule: the broker's loop."""

    def __init__(
        self, broker_id: int, config: BrokerConfig, clock: Clock, rng: random.Random, log: ClientMetricsLog
    ) -> None:
        self._broker_id = broker_id
        self._clock = clock
        self._random = rng
        self._log = log
        self.max_bytes = int(config.others.get(MAX_BYTES_CONFIG, DEFAULT_MAX_BYTES))
        """Maximum size of a push in bytes, both compressed and uncompressed."""
        self._instances: OrderedDict[bytes, _Instance] = OrderedDict()

    def subscribe(self, instance_id: bytes, client: PushingClient, image: MetadataImage) -> tuple[bytes, _Instance]:
        """Return the client instance id (a new one for zeros) and its subscription. Raises ApiError."""
        while instance_id == NO_ID:
            instance_id = version_4(self._random.randbytes(16))
        instance = self._instance(instance_id, client, image)
        now_ms = self._clock.now_ms()
        last_ms = max(
            (each for each in (instance.last_get_ms, instance.last_push_ms) if each is not None), default=None
        )
        if last_ms is None or now_ms - last_ms >= instance.subscription.interval_ms:
            instance.last_get_ms = now_ms
        elif instance.last_error not in {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE}:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return instance_id, instance

    def push(
        self,
        instance_id: bytes,
        client: PushingClient,
        image: MetadataImage,
        *,
        subscription_id: int,
        terminating: bool,
        compression: int,
        payload: bytes,
    ) -> None:
        """Store the metrics of a push. Raises ApiError."""
        if instance_id in RESERVED:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        instance = self._instance(instance_id, client, image)
        try:
            self._check_push(instance, subscription_id, compression, payload, terminating=terminating)
            metrics = _unpacked(compression, payload, self.max_bytes)
        except ApiError as error:
            instance.last_error = error.error_code
            raise
        finally:
            instance.terminating = terminating
        instance.last_error = ErrorCode.NONE
        self._log.add(self._broker_id, client, instance_id, instance.subscription, metrics, terminated=terminating)

    def _check_push(
        self,
        instance: _Instance,
        subscription_id: int,
        compression: int,
        payload: bytes,
        *,
        terminating: bool,
    ) -> None:
        if instance.terminating:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        now_ms = self._clock.now_ms()
        last_push_ms, last_get_ms = instance.last_push_ms, instance.last_get_ms
        is_first_after_get = last_get_ms is not None and (last_push_ms is None or last_get_ms > last_push_ms)
        if is_first_after_get or last_push_ms is None or now_ms - last_push_ms >= instance.subscription.interval_ms:
            instance.last_push_ms = now_ms
        elif not terminating:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != instance.subscription_id:
            raise ApiError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if compression not in list(CompressionCodec):
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(payload) > self.max_bytes:
            raise ApiError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _instance(self, instance_id: bytes, client: PushingClient, image: MetadataImage) -> _Instance:
        """Return the client instance; it is replaced if the subscriptions have changed."""
        now_ms = self._clock.now_ms()
        for old in [key for key, each in self._instances.items() if each.expires_ms <= now_ms]:
            del self._instances[old]
        subscriptions = _subscriptions(image)
        instance = self._instances.pop(instance_id, None)
        labels: Mapping[str, str]
        if instance is None:
            labels = _labels(instance_id, client)
            client.when_lost(lambda: self._instances.pop(instance_id, None))
        else:
            labels = instance.labels
        if instance is None or instance.subscriptions != subscriptions:
            subscription = _matching(labels, subscriptions)
            instance = _Instance(labels, subscriptions, subscription, _subscription_id(subscription, instance_id))
        instance.expires_ms = now_ms + max(EXPIRY_MS, INTERVALS_TO_EXPIRY * instance.subscription.interval_ms)
        self._instances[instance_id] = instance
        if len(self._instances) > LIMIT:
            self._instances.popitem(last=False)
        return instance


def _unpacked(compression: int, payload: bytes, max_bytes: int) -> list[ClientMetric]:
    """Return the metrics of a payload. Raises ApiError INVALID_RECORD, also if they are too large once unpacked."""
    try:
        return parse_metrics(decompress(CompressionCodec(compression), payload, max_bytes)) if payload else []
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from error
    except ApiError as error:
        raise ApiError(ErrorCode.INVALID_RECORD) from error


def _labels(instance_id: bytes, client: PushingClient) -> dict[str, str]:
    """Return the client labels that a subscription's `match` can use."""
    host, _, port = client.peer.rpartition(":")
    name, version = client.software
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": client.client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": host,
        "client_source_port": port,
    }


def _subscriptions(image: MetadataImage) -> dict[tuple[int, str], Mapping[str, str]]:
    resources = image.resource_configs
    code = ConfigResourceType.CLIENT_METRICS
    return {key: configs for key, configs in resources.items() if key[0] == code and configs}


def _matching(labels: Mapping[str, str], subscriptions: Mapping[Any, Mapping[str, str]]) -> Subscription:
    """Return the union of all subscriptions that match the client."""
    from broker_sim.regex.java import compile_java  # noqa: PLC0415 - only where clients push metrics

    metrics: set[str] = set()
    interval_ms = INTERVAL_MS
    for configs in subscriptions.values():
        values: dict[str, Any] = {name: CLIENT_METRICS_CONFIGS[name].parse(text) for name, text in configs.items()}
        patterns = (pattern.partition("=") for pattern in values.get("match", ()))
        if all(compile_java(text.strip()).fullmatch(labels[name.strip()]) for name, _, text in patterns):
            metrics.update(values.get("metrics", ()))
            interval_ms = min(interval_ms, values.get("interval.ms", INTERVAL_MS))
    return Subscription((ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics)), interval_ms)


def _subscription_id(subscription: Subscription, instance_id: bytes) -> int:
    text = f"[{', '.join(subscription.metrics)}]{subscription.interval_ms}"
    folded = int.from_bytes(instance_id[:8]) ^ int.from_bytes(instance_id[8:])
    number = crc32c(text.encode()) ^ (folded >> 32) ^ (folded & 0xFFFFFFFF)
    return number - (1 << 32) if number >= 1 << 31 else number
