"""The features of a cluster, and the levels that brokers know; mirrors `QuorumFeatures` and `Feature`.

A directory keeps the levels of its cluster, so brokers may be newer than they are. Those of a newer cluster
are refused, as by Kafka, which cannot replay them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError
from broker_sim.metadata.feature_names import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from broker_sim.protocol.release import find_release, releases

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker_sim.protocol.release import Release


_FEATURES: Final = (
    METADATA_VERSION,
    GROUP_VERSION,
    TRANSACTION_VERSION,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
)
"""The features that the controller has: Kafka's without the one of its own quorum."""


class SupportedFeature(NamedTuple):
    """The levels of a feature that a broker supports."""

    name: str
    min_version: int
    max_version: int

    @property
    def text(self) -> str:
        """The levels as messages name them."""
        return f"{self.min_version}-{self.max_version}"


def supported_features(release: str | None) -> tuple[SupportedFeature, ...]:
    """Return what brokers of that Kafka release support; None: of the default one.

    Raises ConfigError for a release that is unknown.
    """
    levels = find_release(release).features
    return tuple(SupportedFeature(name, *levels[name][:2]) for name in _FEATURES if name in levels)


def check_finalized_features(features: Mapping[str, int], release: str | None, directory: Path) -> None:
    """Raise ConfigError if the cluster of a data directory has a level that its brokers do not know."""
    supported = {feature.name: feature for feature in supported_features(release)}
    for name, level in features.items():
        feature = supported.get(name)
        if feature is None or not (feature.min_version <= level <= feature.max_version):
            knowledge = "do not know it" if feature is None else f"know {feature.text}"
            raise ConfigError(
                f"The cluster in {directory} has {name} {level}, but its brokers {knowledge}: "
                f"{_advice(find_release(release), name, level)}, or take another directory"
            )


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    """Return whether partitions have ELRs (KIP-966)."""
    return features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def initial_features(release: str | None) -> Mapping[str, int]:
    """Return the features of a cluster that was formatted by that Kafka release; None: by the default one.

    Raises ConfigError for a release that is unknown.
    """
    finalized = find_release(release).finalized_features
    return {name: finalized[name] for name in _FEATURES if name in finalized}


SUPPORTED_FEATURES: Final = supported_features(None)
DEFAULT_FEATURES: Final[Mapping[str, int]] = MappingProxyType(dict(initial_features(None)))
"""The features of a new cluster of the default release."""


def _advice(older: Release, name: str, level: int) -> str:
    for release in releases().values():
        if release.is_at_least(older.name) and release.supports(name, level):
            return (
                f"they are those of an older Kafka, so start with `as_version` (--as-version) {release.name} or newer"
            )
    return "a newer broker-sim has written it, so upgrade broker-sim"
