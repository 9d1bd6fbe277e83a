"""The leader epochs of a log in files, as its next process finds them."""

import pytest

from .test_reopened_log import Machine, batch


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path / "broker-1")
    yield machine
    machine.directory.close()


@pytest.mark.parametrize("clean", [True, False])
def test_epochs_of_a_truncated_log_are_those_of_its_records(machine, clean):
    log = machine.log
    log.append_as_leader(batch(5), 2)
    log.append_as_leader(batch(5), 4)
    log.truncate_to(5)
    log.append_as_leader(batch(8), 2)  # beyond where epoch 4 began
    log.leader_epoch_cache.begin(6, log.log_end_offset)
    machine.restart(clean=clean)
    assert machine.log.leader_epoch_cache.entries == ((2, 0),)
    assert machine.log.log_end_offset == 13


def test_start_without_new_records_writes_no_epochs(machine):
    machine.log.append_as_leader(batch(5), 2)
    machine.restart(clean=True)
    (file,) = machine.files("leader-epoch-checkpoint")
    before = file.stat().st_ino  # each write makes a new file
    machine.log.leader_epoch_cache.begin(3, 5)
    machine.restart(clean=True)
    assert file.stat().st_ino == before
    machine.log.append_as_leader(batch(5), 4)
    assert file.stat().st_ino != before
