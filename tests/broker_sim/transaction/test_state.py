"""Tests of transaction states: their names and valid transitions."""

import pytest

from broker_sim.transaction.state import TransactionState, TransactionVersion, state_named

S = TransactionState


def test_state_names_are_kafkas():
    assert [state.state_name for state in S] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert [state_named(state.state_name) for state in S] == list(S)
    assert state_named("ongoing") is None


@pytest.mark.parametrize(
    ("state", "before"),
    [
        (S.EMPTY, "Empty CompleteCommit CompleteAbort"),
        (S.ONGOING, "Empty Ongoing CompleteCommit CompleteAbort"),
        (S.PREPARE_COMMIT, "Ongoing"),
        (S.PREPARE_ABORT, "Empty Ongoing CompleteCommit CompleteAbort PrepareEpochFence"),
        (S.COMPLETE_COMMIT, "PrepareCommit"),
        (S.COMPLETE_ABORT, "PrepareAbort"),
        (S.DEAD, "Empty CompleteCommit CompleteAbort"),
        (S.PREPARE_EPOCH_FENCE, "Ongoing"),
    ],
)
def test_valid_previous_states_are_kafkas(state, before):
    assert " ".join(other.state_name for other in S if state.may_follow(other)) == before


def test_version_levels_set_record_version_and_epoch_bump():
    assert [level.log_value_version for level in TransactionVersion] == [0, 1, 1]
    assert [level.supports_epoch_bump for level in TransactionVersion] == [False, False, True]
