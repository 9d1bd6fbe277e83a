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
from broker_sim.protocol.release import find_release

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker_sim.protocol.release import Release

DEFAULT_FEATURES: Final[Mapping[str, int]] = MappingProxyType(
    {
        METADATA_VERSION: 30,
        GROUP_VERSION: 1,
        ELIGIBLE_LEADER_REPLICAS_VERSION: 1,
        TRANSACTION_VERSION: 2,
        SHARE_VERSION: 1,
        STREAMS_VERSION: 1,
    }
)
"""The features of a cluster formatted by Kafka 4.3, as far as the controller has them."""


class SupportedFeature(NamedTuple):
    """The levels of a feature that a broker supports."""

    name: str
    min_version: int
    max_version: int

    @property
    def text(self) -> str:
        """The levels as messages name them."""
        return f"{self.min_version}-{self.max_version}"


SUPPORTED_FEATURES: Final[tuple[SupportedFeature, ...]] = (
    SupportedFeature(METADATA_VERSION, 7, 30),
    SupportedFeature(GROUP_VERSION, 0, 1),
    SupportedFeature(TRANSACTION_VERSION, 0, 2),
    SupportedFeature(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, 1),
    SupportedFeature(SHARE_VERSION, 0, 1),
    SupportedFeature(STREAMS_VERSION, 0, 1),
)


def limited_features(release: Release) -> tuple[SupportedFeature, ...]:
    """Return our features that the release has too, at the levels of the release."""
    return tuple(
        SupportedFeature(name, *release.features[name][:2])
        for name, _, _ in SUPPORTED_FEATURES
        if name in release.features
    )


def supported_features(release: str | None) -> tuple[SupportedFeature, ...]:
    """Return what brokers of that Kafka release support; None: of 4.3.

    Raises ConfigError for a release that is unknown.
    """
    return SUPPORTED_FEATURES if release is None else limited_features(find_release(release))


def check_finalized_features(features: Mapping[str, int], release: str | None, directory: Path) -> None:
    """Raise ConfigError if the cluster of a data directory has a level that its brokers do not know."""
    supported = {feature.name: feature for feature in supported_features(release)}
    for name, level in features.items():
        feature = supported.get(name)
        if feature is None or not (feature.min_version <= level <= feature.max_version):
            knowledge = "do not know it" if feature is None else f"know {feature.text}"
            raise ConfigError(
                f"The cluster in {directory} has {name} {level}, but its brokers {knowledge}: "
                f"{_ADVICE_ON_RELEASE if release is None else _ADVICE_ON_AS_VERSION}, or take another "
                "directory"
            )


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    """Return whether partitions have ELRs (KIP-966)."""
    return features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def initial_features(release: str | None) -> Mapping[str, int]:
    """Return the features of a cluster that was formatted by that Kafka release; None: by 4.3.

    Raises ConfigError for a release that is unknown.
    """
    if release is None:
        return DEFAULT_FEATURES
    finalized = find_release(release).finalized_features
    return {name: finalized[name] for name in DEFAULT_FEATURES if name in finalized}


_ADVICE_ON_RELEASE: Final = "a newer broker-sim has written it, so upgrade broker-sim"
_ADVICE_ON_AS_VERSION: Final = (
    "they are those of an older Kafka, so start without `as_version` (--as-version) or with a newer one"
)
