"""Tests of the conversion of groups to records and back."""

from broker_sim.group.classic.group_metadata import group_record, restored_group


def record_of(bench):
    assignments = dict.fromkeys(bench.group.members, b"mine")
    return group_record(bench.group, assignments)


def test_group_record_round_trip(bench):
    bench.stable_static("one", "two")
    record = record_of(bench)
    restored = restored_group("group", record.value, bench.clock)
    assert group_record(restored, dict.fromkeys(restored.members, b"mine")) == record


def test_missing_rebalance_timeout_defaults_to_session_timeout(bench):
    bench.stable()
    value = record_of(bench).value
    value.members[0].rebalance_timeout = -1
    restored = restored_group("group", value, bench.clock)
    assert restored.rebalance_timeout_ms == 10_000


def test_record_without_timestamp_restores_none(bench):
    bench.stable()
    value = record_of(bench).value
    value.current_state_timestamp = -1
    restored = restored_group("group", value, bench.clock)
    assert restored.state_timestamp_ms is None
    assert group_record(restored, dict.fromkeys(restored.members, b"mine")).value == value
