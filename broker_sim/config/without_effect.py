"""The configurations that Kafka knows and that change nothing here, with the reason.

They are accepted, so that a configuration made for Kafka can be used as it is, and a cluster logs
`configuration_without_effect` once when one is set. A test compares these tables with what the
simulator reads.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_sim.config.per_listener import PER_LISTENER

_OWN_DIRECTORY: Final = "logs are kept in memory, or in the directory of --data-dir"
_NO_PREPARED_FILES: Final = "files are not made before they are filled"

_BROKER_REASONS: Final[Mapping[str, tuple[str, ...]]] = {
    _OWN_DIRECTORY: ("log.dir", "log.dirs"),
    _NO_PREPARED_FILES: ("log.preallocate",),
    "only version 6 of InitProducerId asks for it, which Kafka 4.3 does not serve either": (
        "transaction.two.phase.commit.enable",
    ),
    "one fetcher follows each leader": ("num.replica.fetchers",),
    "a starting broker tries to register for ever": ("initial.broker.registration.timeout.ms",),
    "there is no metadata log": ("metadata.max.idle.interval.ms",),
    "sockets have the buffers of the operating system": ("socket.receive.buffer.bytes", "socket.send.buffer.bytes"),
    "requests do not queue: each is handled when it has been read": ("queued.max.requests",),
}

_TOPIC_REASONS: Final[Mapping[str, tuple[str, ...]]] = {_NO_PREPARED_FILES: ("preallocate",)}


def _by_name(reasons: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    return MappingProxyType({name: why for why, names in reasons.items() for name in names})


BROKER_WITHOUT_EFFECT: Final = _by_name(_BROKER_REASONS)
"""Why each of these broker configurations changes nothing, by its name."""

TOPIC_WITHOUT_EFFECT: Final = _by_name(_TOPIC_REASONS)
"""Why each of these topic configurations changes nothing, by its name."""

CHANGE_WITHOUT_EFFECT: Final = PER_LISTENER | {
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "listener.security.protocol.map",
    "listeners",
    "sasl.enabled.mechanisms",
    "ssl.client.auth",
    "ssl.enabled.protocols",
}
"""Broker configurations that have an effect when they are set statically, but not dynamically."""
