"""What clients of a coordinator are told of a failed append; mirrors `CoordinatorOperationExceptionHelper`."""

from __future__ import annotations

from typing import Final

from broker_sim.errors import ApiError, ErrorCode

_TOLD: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class AppendError(ApiError):
    """Records were not appended, or not committed in time; its `error_code` is what clients are told."""

    def __init__(self, append_error: ErrorCode) -> None:
        """`append_error` is the error of the append as it is."""
        super().__init__(coordinator_error(append_error))
        self.append_error = append_error


def coordinator_error(error_code: ErrorCode) -> ErrorCode:
    """Return the error of an append as a client is told it."""
    return _TOLD.get(error_code, error_code)
