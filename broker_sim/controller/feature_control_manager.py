"""The finalized levels of features; mirrors `FeatureControlManager`.

Deliberate differences: `kraft.version` is unknown, as there is no quorum; and of the others only
`transaction.version`, `share.version` and `streams.version` can be changed. Error messages are like Kafka's, because
clients see them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.controller.requests import FeatureUpdate, UpgradeType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.release import find_release

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.metadata import MetadataDelta
    from broker_sim.protocol.release import Release

__all__ = [
    "DEFAULT_FEATURES",
    "ELR_FEATURE",
    "SUPPORTED_FEATURES",
    "FeatureControlManager",
    "SupportedFeature",
    "initial_features",
    "limited_features",
]

ELR_FEATURE: Final = "eligible.leader.replicas.version"
METADATA_VERSION: Final = "metadata.version"
TRANSACTION_VERSION: Final = "transaction.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
CHANGEABLE: Final = (TRANSACTION_VERSION, SHARE_VERSION, STREAMS_VERSION)

DEFAULT_FEATURES: Final[Mapping[str, int]] = MappingProxyType(
    {
        METADATA_VERSION: 30,
        "group.version": 1,
        ELR_FEATURE: 1,
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


SUPPORTED_FEATURES: Final[tuple[SupportedFeature, ...]] = (
    SupportedFeature(METADATA_VERSION, 7, 30),
    SupportedFeature("group.version", 0, 1),
    SupportedFeature(TRANSACTION_VERSION, 0, 2),
    SupportedFeature(ELR_FEATURE, 0, 1),
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


def initial_features(release: str | None) -> Mapping[str, int]:
    """Return the features of a cluster that was formatted by that Kafka release; None: by 4.3.

    Raises ConfigError for a release that is unknown.
    """
    if release is None:
        return DEFAULT_FEATURES
    finalized = find_release(release).finalized_features
    return {name: finalized[name] for name in DEFAULT_FEATURES if name in finalized}


class FeatureControlManager:
    """Decides on changes of levels; `controller_id` is told in errors."""

    def __init__(self, controller_id: int) -> None:
        self._controller_id = controller_id
        self._supported = {feature.name: feature for feature in SUPPORTED_FEATURES}

    def update(self, delta: MetadataDelta, updates: Sequence[FeatureUpdate]) -> None:
        """Change all levels or none; of several updates of a feature the last one counts.

        Raises `ApiError` INVALID_UPDATE_VERSION.
        """
        levels = dict(delta.base.features)
        for update in {update.feature: update for update in updates}.values():
            reason = self._reason_against(update, levels.get(update.feature, 0))
            if reason is not None:
                raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{_ALL_FAILED}{reason}")
            levels.pop(update.feature, None)
            if update.level > 0:
                levels[update.feature] = update.level
        if levels != delta.base.features:
            delta.set_features(levels)

    def _reason_against(self, update: FeatureUpdate, current: int) -> str | None:
        name, level = update.feature, update.level
        reason = self._reason_of_level(update, current)
        if reason is not None:
            return f"Invalid update version {level} for feature {name}. {reason}"
        if name == METADATA_VERSION and level < current:
            return (
                f"Unsupported metadata.version downgrade from {current} to {level}. Refusing to"
                " perform the requested downgrade because it might delete metadata information."
            )
        if name not in CHANGEABLE and level != current:
            return f"The simulator does not change {name}, see docs/differences.md."
        return None

    def _reason_of_level(self, update: FeatureUpdate, current: int) -> str | None:
        if update.upgrade_type is UpgradeType.UNKNOWN:
            return "The controller does not support the given upgrade type."
        if update.level < 0:
            return "A feature version cannot be less than 0."
        supported = self._supported.get(update.feature)
        if supported is None:
            return f"Local controller {self._controller_id} does not support this feature."
        lowest, highest = supported.min_version, supported.max_version
        if not (lowest <= update.level <= highest):
            return (
                f"Local controller {self._controller_id} only supports versions {lowest}-{highest}"
            )
        return _reason_of_type(update, current)


def _reason_of_type(update: FeatureUpdate, current: int) -> str | None:
    is_upgrade = update.upgrade_type is UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade."
        )
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None


_ALL_FAILED: Final = "The update failed for all features since the following feature had an error: "
