"""The features of a cluster, and the levels that brokers support; mirrors `QuorumFeatures` and `Feature`.

A data directory stores its cluster's levels, so brokers may be newer than the levels. Levels of a newer cluster
are refused, as by Kafka, which cannot replay them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError, did_you_mean
from broker_sim.metadata.feature_names import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
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
    KRAFT_VERSION,
    GROUP_VERSION,
    TRANSACTION_VERSION,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
)
ELR_METADATA_VERSION: Final = 23
"""The first `metadata.version` whose records have ELRs."""
_NO_CHOICE: Final[Mapping[str, int]] = MappingProxyType({})


class SupportedFeature(NamedTuple):
    """The levels of a feature that a broker supports."""

    name: str
    min_version: int
    max_version: int

    @property
    def text(self) -> str:
        """The range of levels as in messages."""
        return f"{self.min_version}-{self.max_version}"


def supported_features(release: Release) -> tuple[SupportedFeature, ...]:
    """Return the features that brokers of a Kafka release support."""
    levels = release.features
    return tuple(SupportedFeature(name, *levels[name][:2]) for name in _FEATURES if name in levels)


def check_finalized_features(
    features: Mapping[str, int], release: Release, chosen: Mapping[str, int], directory: Path
) -> None:
    """Raise ConfigError if a data directory's cluster has unsupported levels, or levels other than `chosen`."""
    for name, level in chosen.items():
        if features.get(name, 0) != level:
            raise ConfigError(
                f"The cluster in {directory} has {name} {features.get(name, 0)}, not {level}: leave out features"
                " (--feature), or use another directory"
            )
    supported = {feature.name: feature for feature in supported_features(release)}
    for name, level in features.items():
        feature = supported.get(name)
        if feature is None or not (feature.min_version <= level <= feature.max_version):
            support = "do not support it" if feature is None else f"support {feature.text}"
            raise ConfigError(
                f"The cluster in {directory} has {name} {level}, but its brokers {support}: "
                f"{_advice(release, name, level)}, or use another directory"
            )


def has_eligible_leader_replicas(features: Mapping[str, int]) -> bool:
    """Return whether partitions have ELRs (KIP-966)."""
    return features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def initial_features(release: Release, chosen: Mapping[str, int] = _NO_CHOICE) -> Mapping[str, int]:
    """Return the features of a new cluster of a Kafka release.

    `chosen` levels replace the release's own. With an older `metadata.version`, features that are not chosen get the
    levels of the newest release with at most that version, as with `kafka-storage.sh format --feature`. Raises
    ConfigError for an unknown feature or level.
    """
    supported = {feature.name: feature for feature in supported_features(release)}
    for name, level in chosen.items():
        _check_level(supported, name, level, release.name)
    metadata_version = chosen.get(METADATA_VERSION, release.finalized_features.get(METADATA_VERSION, 0))
    formatted_by = release
    if METADATA_VERSION in chosen:
        formatted_by = next(
            each
            for each in reversed(list(releases().values()))
            if release.is_at_least(each.name) and each.finalized_features.get(METADATA_VERSION, 0) <= metadata_version
        )
    if chosen.get(KRAFT_VERSION, 0) > 0:
        raise ConfigError(f"{KRAFT_VERSION} of a new cluster is 0: leave it out, and upgrade the running cluster")
    levels = {**formatted_by.finalized_features, KRAFT_VERSION: 0, **chosen}
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0 and metadata_version < ELR_METADATA_VERSION:
        raise ConfigError(
            f"{ELIGIBLE_LEADER_REPLICAS_VERSION} {levels[ELIGIBLE_LEADER_REPLICAS_VERSION]} needs {METADATA_VERSION}"
            f" {ELR_METADATA_VERSION} or newer, not {metadata_version}"
        )
    return {name: levels[name] for name in _FEATURES if levels.get(name, 0) > 0}


def _check_level(supported: Mapping[str, SupportedFeature], name: str, level: object, release: str) -> None:
    if name not in supported:
        known = f"must be one of {', '.join(supported)}" if supported else "it has none"
        raise ConfigError(f"Kafka {release} has no feature {name!r}{did_you_mean(name, supported)}: {known}")
    feature = supported[name]
    is_number = isinstance(level, int) and not isinstance(level, bool)
    if not is_number or not feature.min_version <= level <= feature.max_version:  # type: ignore[operator]
        raise ConfigError(f"Kafka {release} supports {name} {feature.text}, not {level!r}")


SUPPORTED_FEATURES: Final = supported_features(find_release())
DEFAULT_FEATURES: Final[Mapping[str, int]] = MappingProxyType(dict(initial_features(find_release())))
"""The features of a new cluster of the default release."""


def _advice(older: Release, name: str, level: int) -> str:
    for release in releases().values():
        if release.is_at_least(older.name) and release.supports(name, level):
            return f"they behave as an older Kafka, so start with `as_version` (--as-version) {release.name} or newer"
    return "a newer broker-sim has written it, so upgrade broker-sim"
