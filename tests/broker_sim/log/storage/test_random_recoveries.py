"""Random logs after a kill: what is opened from the recovery point on is as if all had been looked at."""

import random
import shutil

import pytest

from broker_sim.log.cleaner.batch_filter import OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner
from broker_sim.log.cleaner.manager import LogToClean
from broker_sim.log.storage import files as files_module

from .test_recovery_point import KEYS, append_idempotent, append_keyed, checkpointed, names_from
from .test_reopened_log import CONFIG, Machine, keyed, marker, state_of

SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.soak(part="kills")) for seed in range(8, 20))]
STEPS = 90


def append_plain(log, rng, epoch):
    log.append_as_leader(keyed(b"%d" % rng.randrange(KEYS), rng.randrange(40)), epoch)


def append_in_transaction(log, rng, epoch):
    append_keyed(log, rng, epoch, rng.choice((7, 8)), is_transactional=True)


def end_transaction(log, rng, epoch):
    for producer_id, entry in log.producer_state.active_producers.items():
        if entry.current_txn_first_offset is not None:
            commit = rng.random() < 0.4
            log.append_as_leader(marker(producer_id, commit=commit), epoch, "coordinator")
            return


def truncate(log, rng, epoch):
    end = log.log_end_offset
    log.truncate_to(rng.randint(max(log.log_start_offset, end - 12), end))
    # An end within a gap of the cleaner would not be found again, as in Kafka.
    append_plain(log, rng, epoch)


def clean(log, _rng, _epoch):
    log.offsets.update_high_watermark(log.log_end_offset)
    log.roll()
    cleanable = LogToClean(log, 0, 2_000_000)
    if cleanable.cleanable_bytes:
        list(Cleaner(cleanable, OffsetMap(24 * 1_000, 1.0)).clean())


def delete_records(log, rng, _epoch):
    log.offsets.update_high_watermark(log.log_end_offset)
    log.offsets.maybe_increment_log_start_offset(rng.randint(log.log_start_offset, log.log_end_offset) // 2)
    if rng.random() < 0.5:
        log.delete_old_segments()


def roll(log, _rng, _epoch):
    if log.segments[-1]:
        log.roll()


def flush(log, _rng, _epoch):
    log.flush_batches()


USUAL = [append_plain, append_idempotent] * 6
RARE = [truncate, clean, delete_records, roll, flush]
IN_TRANSACTIONS = [append_in_transaction, append_in_transaction, end_transaction] * 3


def write_by_chance(machine, rng, kind):
    """Write and checkpoint; there are transactions never, above the recovery point, or everywhere."""
    log = machine.log
    log.update_config(CONFIG.replaced(cleanup_policy=("compact", "delete")))
    epoch = 0
    for step in range(STEPS):
        is_late = step >= STEPS - 5
        actions = USUAL if is_late else USUAL + RARE
        if kind == "everywhere" or (kind == "late" and is_late):
            actions = actions + IN_TRANSACTIONS
        epoch += rng.random() < 0.1
        rng.choice(actions)(log, rng, epoch)
        if step == STEPS - 6 and kind == "late":
            roll(log, rng, epoch)
            machine.logs.checkpoint_recovery_points()
        elif rng.random() < 0.2:
            machine.logs.checkpoint_recovery_points()
    log.offsets.update_high_watermark(log.log_end_offset)
    machine.logs.checkpoint_high_watermarks()
    machine.logs.checkpoint_log_start_offsets()


def arrays_of(log):
    """Return what is known of the log without a look at its batches."""
    segments = [
        (
            segment.base_offset,
            segment.end_offset,
            segment.start_position,
            segment.end_position,
            segment.largest_timestamp,
            segment.first_batch_timestamp,
        )
        for segment in log.segments
    ]
    batches = {
        producer_id: list(entry.batch_metadata) for producer_id, entry in log.producer_state.active_producers.items()
    }
    unstable = log.producer_state.first_unstable_offset
    return segments, batches, unstable, log.storage.recovery_point, log.size_bytes


@pytest.mark.parametrize("kind", ["never", "late", "everywhere"])
@pytest.mark.parametrize("seed", SEEDS)
def test_recovered_log_is_as_one_that_was_looked_at_whole(tmp_path, monkeypatch, looked_at, kind, seed):
    print(f"seed {seed}, transactions {kind}")
    machine = Machine(tmp_path / "one")
    write_by_chance(machine, random.Random(f"{kind} {seed}"), kind)
    before = state_of(machine.log)
    expected = names_from(machine.log, checkpointed(machine))
    machine.directory.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    looked_at.clear()
    machine.start()
    if kind == "never":
        assert looked_at == expected
    monkeypatch.setattr(files_module, "needs_no_batches", lambda *_: False)
    other = Machine(tmp_path / "two")
    try:
        assert arrays_of(machine.log) == arrays_of(other.log)
        found = state_of(machine.log)
        assert found == state_of(other.log)
        for known in ("bytes", "bases", "offsets", "epochs", "by time"):
            assert found[known] == before[known], known
    finally:
        machine.directory.close()
        other.directory.close()
