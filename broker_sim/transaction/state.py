"""The states of a transactional id; mirrors `TransactionState` and `TransactionVersion`."""

from enum import IntEnum
from types import MappingProxyType
from typing import Final


class TransactionState(IntEnum):
    """State of a transactional id; the numbers are those written in records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """The id's tombstone is being written; the id is removed afterwards."""
    PREPARE_EPOCH_FENCE = 7
    """The producer is being fenced by an abort; never written to the log."""

    @property
    def state_name(self) -> str:
        """Kafka's name of the state, such as PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def is_complete(self) -> bool:
        """Whether no transaction is ongoing or ending, so that the id may expire."""
        return self in _COMPLETE

    @property
    def is_prepared(self) -> bool:
        """Whether commit or abort is decided, but not all markers are written."""
        return self in _PREPARED

    def may_follow(self, state: "TransactionState") -> bool:
        """Whether the transition from `state` to this state is valid."""
        return state in _PREVIOUS[self]


_S = TransactionState
_COMPLETE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
_PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
_PREVIOUS: Final = MappingProxyType(
    {
        _S.EMPTY: _COMPLETE,
        _S.ONGOING: _COMPLETE | {_S.ONGOING},
        _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
        _S.PREPARE_ABORT: _COMPLETE | {_S.ONGOING, _S.PREPARE_EPOCH_FENCE},
        _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
        _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
        _S.DEAD: _COMPLETE,
        _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
    }
)
_BY_NAME: Final = MappingProxyType({state.state_name: state for state in TransactionState})


def state_named(name: str) -> TransactionState | None:
    """Return the state with that Kafka name, None if there is none."""
    return _BY_NAME.get(name)


class TransactionVersion(IntEnum):
    """Levels of the feature `transaction.version`; request versions imply one too."""

    TV_0 = 0
    TV_1 = 1
    """Log values may have tagged fields."""
    TV_2 = 2
    """Each transaction has its own epoch (KIP-890, part 2)."""

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether the end of a transaction raises the producer's epoch."""
        return self >= TransactionVersion.TV_2

    @property
    def log_value_version(self) -> int:
        """Version of `TransactionLogValue` written at this level."""
        return 1 if self >= TransactionVersion.TV_1 else 0
