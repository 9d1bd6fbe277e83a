"""UpdateFeatures (key 57), versions 0-2; mirrors `ControllerApis.handleUpdateFeatures`.

Behaviour:
* either all features change or none

Version notes: 1 has `validate_only` and the type of the change; before, every change is an upgrade, whatever
`allow_downgrade` says. 2 has no results of single features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import FeatureUpdate, Outcome, UpgradeType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.forwarding import forward
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

WITHOUT_RESULTS: Final = 2
_KNOWN_TYPES: Final = frozenset(UpgradeType)

Result = messages.UpdateFeaturesResponse.UpdatableFeatureResult


def handle_update_features(
    request: messages.UpdateFeaturesRequest,
    context: RequestContext,
    respond: Callable[[messages.UpdateFeaturesResponse], None],
) -> None:
    """Change the finalized levels of features."""
    updates = [_update(update) for update in request.feature_updates]

    def answer(outcome: Outcome) -> None:
        response = messages.UpdateFeaturesResponse(error_code=outcome.error_code, error_message=outcome.error_message)
        if outcome.ok and context.api_version < WITHOUT_RESULTS:
            response.results = [
                Result(name, ErrorCode.NONE, ErrorCode.NONE.name)
                for name in dict.fromkeys(update.feature for update in updates)
            ]
        respond(response)

    forward(
        context.broker,
        request.timeout_ms,
        lambda controller: controller.update_features(updates, request.validate_only),
        lambda _: answer(Outcome()),
        answer,
    )


def _update(update: messages.UpdateFeaturesRequest.FeatureUpdateKey) -> FeatureUpdate:
    is_known = update.upgrade_type in _KNOWN_TYPES
    upgrade_type = UpgradeType(update.upgrade_type) if is_known else UpgradeType.UNKNOWN
    return FeatureUpdate(update.feature, update.max_version_level, upgrade_type)
