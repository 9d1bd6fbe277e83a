"""ApiVersions (key 18), versions 0-5; mirrors `KafkaApis.handleApiVersionsRequest`.

Behaviour:
* lists the served APIs with their advertised versions, and the features
* an unknown version is answered by `RequestDispatcher`, in version 0, with UNSUPPORTED_VERSION

* a client that expects another cluster or node is answered REBOOTSTRAP_REQUIRED (KIP-1242)

Version notes: 3 is flexible and has the client's software name (KIP-511), 4 may carry features whose
lowest version is 0, 5 has the cluster and node that the client expects, both or neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker_sim.controller import SUPPORTED_FEATURES
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.special_values import NO_NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.controller import SupportedFeature
    from broker_sim.handlers.context import Handler, RequestContext

SOFTWARE_VERSION = 3
ZERO_FEATURES_VERSION = 4
EXPECTATION_VERSION = 5


_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle_api_versions(
    ranges: Iterable[tuple[int, int, int]], features: Sequence[SupportedFeature] = SUPPORTED_FEATURES
) -> Handler:
    """Return the handler that advertises `ranges` of (API key, lowest, highest version)."""
    api_keys = build_api_versions(ranges).api_keys

    def handle(
        request: messages.ApiVersionsRequest,
        context: RequestContext,
        respond: Callable[[messages.ApiVersionsResponse], None],
    ) -> None:
        valid = context.api_version < SOFTWARE_VERSION or (
            _SOFTWARE_NAME.fullmatch(request.client_software_name) is not None
            and _SOFTWARE_NAME.fullmatch(request.client_software_version) is not None
        )
        if context.api_version >= EXPECTATION_VERSION:
            valid = valid and (request.cluster_id is None) == (request.node_id == NO_NODE)
        if not valid:
            respond(messages.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        if request.cluster_id is not None:
            expected = request.cluster_id, request.node_id
            if expected != (context.broker.image.cluster_id, context.broker.broker_id):
                respond(messages.ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED))
                return
        if context.api_version >= SOFTWARE_VERSION:
            context.connection.software = (request.client_software_name, request.client_software_version)
        response = messages.ApiVersionsResponse(api_keys=api_keys)
        key = messages.ApiVersionsResponse.SupportedFeatureKey
        response.supported_features = [
            key(*feature)
            for feature in features
            if feature.min_version > 0 or context.api_version >= ZERO_FEATURES_VERSION
        ]
        if context.broker.image.features:
            response.finalized_features_epoch = context.broker.image.version
        response.finalized_features = [
            messages.ApiVersionsResponse.FinalizedFeatureKey(name, level, level)
            for name, level in context.broker.image.features.items()
        ]
        respond(response)

    return handle


def build_api_versions(
    ranges: Iterable[tuple[int, int, int]], error_code: ErrorCode = ErrorCode.NONE
) -> messages.ApiVersionsResponse:
    """Return a response that lists the ranges, with UNSUPPORTED_VERSION for a newer client."""
    return messages.ApiVersionsResponse(
        error_code=error_code, api_keys=[messages.ApiVersionsResponse.ApiVersion(*range_) for range_ in ranges]
    )
