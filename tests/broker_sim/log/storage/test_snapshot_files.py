"""Snapshots of producers stay in their files, and are read when somebody asks."""

import gc

import pytest

from broker_sim.log.producer_state_entry import ProducerStateEntry

from .test_reopened_log import Machine, batch, marker, state_of, transactional


@pytest.fixture
def machine(tmp_path):
    """A machine whose log has many segments, and many producers."""
    machine = Machine(tmp_path / "broker-1")
    for number in range(30):
        sent = batch(2, producer_id=number % 10, producer_epoch=0, base_sequence=number // 10 * 2)
        machine.log.append_as_leader(sent, 0)
    machine.log.offsets.update_high_watermark(machine.log.log_end_offset)
    machine.logs.checkpoint_offsets()
    assert len(machine.files(".snapshot")) > 5
    yield machine
    machine.directory.close()


def entries_in_memory():
    gc.collect()
    return sum(isinstance(found, ProducerStateEntry) for found in gc.get_objects())


@pytest.mark.usefixtures("collects_little")
@pytest.mark.parametrize("clean", [True, False])
def test_only_the_producers_of_now_are_in_memory(machine, clean):
    before = entries_in_memory()
    machine.log.roll()
    assert entries_in_memory() == before
    machine.restart(clean=clean)
    assert entries_in_memory() == before
    assert len(machine.log.producer_state.active_producers) == 10


def truncated_state(machine, offset):
    machine.log.truncate_to(offset)
    return state_of(machine.log)


@pytest.mark.parametrize("how", ["damaged", "lost"])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_snapshot_that_cannot_be_read_is_passed_over(machine, tmp_path, caplog, how, count):
    log = machine.log
    for producer_id in (107, 108):
        log.append_as_leader(transactional(producer_id, 0), 1)
    log.append_as_leader(marker(107, commit=False), 1, "coordinator")
    log.append_as_leader(batch(3), 1)
    log.roll()
    log.append_as_leader(marker(108, commit=False), 1, "coordinator")
    log.append_as_leader(batch(3), 1)
    before = state_of(log)
    assert len(before["aborted"]) == 2
    offset = log.log_end_offset - 1
    expected = truncated_state(machine, offset)
    snapshots = machine.files(".snapshot")
    for path in snapshots[-count:]:
        if how == "lost":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-1])
    log.append_as_leader(batch(3), 1)
    assert truncated_state(machine, offset) == expected
    assert caplog.text.count("snapshot_deleted") == min(count, len(snapshots))
    assert machine.files(".snapshot") == snapshots[:-count]
    machine.logs.checkpoint_high_watermarks()
    machine.restart(clean=False)
    assert state_of(machine.log)["producers"] == expected["producers"]
