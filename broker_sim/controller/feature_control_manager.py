"""The finalized levels of features; mirrors `FeatureControlManager`.

Error messages are like Kafka's, because clients see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller.features import ELR_METADATA_VERSION
from broker_sim.controller.requests import FeatureUpdate, UpgradeType
from broker_sim.controller.status import CONTROLLER_ID
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.feature_names import ELIGIBLE_LEADER_REPLICAS_VERSION, KRAFT_VERSION, METADATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim.controller.features import SupportedFeature
    from broker_sim.metadata import MetadataDelta

METADATA_CHANGES: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels of `metadata.version` with new records or fields, which a downgrade would lose."""
_ALL_FAILED: Final = "The update failed for all features since the following feature had an error: "


def update_features(
    delta: MetadataDelta, updates: Sequence[FeatureUpdate], supported: Iterable[SupportedFeature]
) -> None:
    """Change all levels or none, within the supported ones; the last of several updates of a feature counts.

    Raises `ApiError` INVALID_UPDATE_VERSION.
    """
    changes = {update.feature: update for update in updates}
    supported_levels = {feature.name: feature for feature in supported}
    levels = dict(delta.base.features)
    proposed = levels | {name: update.level for name, update in changes.items()}
    for update in changes.values():
        current = levels.get(update.feature, 0)
        reason = _reason_against(update, current, proposed, supported_levels.get(update.feature))
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{_ALL_FAILED}{reason}")
        levels.pop(update.feature, None)
        if update.level > 0:
            levels[update.feature] = update.level
    if levels != delta.base.features:
        delta.set_features(levels)


def _reason_against(
    update: FeatureUpdate, current: int, proposed: Mapping[str, int], supported: SupportedFeature | None
) -> str | None:
    name, level = update.feature, update.level
    reason = _reason_of_level(update, current, supported) or _reason_of_elr(update, proposed)
    if reason is not None:
        return f"Invalid update version {level} for feature {name}. {reason}"
    lost_levels = METADATA_CHANGES.intersection(range(level + 1, current + 1))
    if name == METADATA_VERSION and lost_levels:
        is_unsafe = update.upgrade_type is UpgradeType.UNSAFE_DOWNGRADE
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if is_unsafe
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        return f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
    return None


def _reason_of_level(update: FeatureUpdate, current: int, supported: SupportedFeature | None) -> str | None:
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if supported is None:
        return f"Local controller {CONTROLLER_ID} does not support this feature."
    if not (supported.min_version <= update.level <= supported.max_version):
        return f"Local controller {CONTROLLER_ID} only supports versions {supported.text}"
    return _reason_of_type(update, current)


def _reason_of_type(update: FeatureUpdate, current: int) -> str | None:
    is_upgrade = update.upgrade_type is UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade."
        )
    if update.level < current and update.feature == KRAFT_VERSION:
        return "Can't downgrade the version of this feature."
    if update.level > current and not is_upgrade:
        return "Can't downgrade to a newer version."
    return None


def _reason_of_elr(update: FeatureUpdate, proposed: Mapping[str, int]) -> str | None:
    if update.feature != ELIGIBLE_LEADER_REPLICAS_VERSION:
        return None
    if update.level > 0 and proposed.get(METADATA_VERSION, 0) < ELR_METADATA_VERSION:
        return (
            f"{ELIGIBLE_LEADER_REPLICAS_VERSION} could not be set to {update.level} because it depends on"
            f" {METADATA_VERSION} level {ELR_METADATA_VERSION}"
        )
    return None
