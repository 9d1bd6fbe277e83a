"""The file `leader-epoch-checkpoint`; mirrors `LeaderEpochCheckpointFile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.log.leader_epoch_cache import EpochEntry, LeaderEpochCache
from broker_sim.log.storage.checkpoint_file import read_lines
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from broker_sim.log.storage.file_system import StoragePath
    from broker_sim.log.storage.log_history import LogHistory

log = get_logger(__name__)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"


def read_leader_epochs(path: StoragePath) -> list[EpochEntry]:
    """Return the entries of the file. Raises ValueError or TypeError if they cannot be such entries."""
    entries = [EpochEntry(*map(int, line.split())) for line in read_lines(path)]
    before = EpochEntry(-1, -1)
    for entry in entries:
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            raise ValueError(f"{entry} follows {before}")
        before = entry
    return entries


def load_leader_epochs(path: StoragePath, history: LogHistory) -> list[EpochEntry]:
    """Return what the file has, and newer epochs of batches that were recovered. Raises OSError.

    A file that is lost or damaged is made from all batches.
    """
    why = "there is no such file"
    if path.exists():
        try:
            cache = LeaderEpochCache(read_leader_epochs(path))
        except (ValueError, TypeError) as error:
            why = str(error)
        else:
            for entry in history.recovered_epochs:
                if cache.latest_epoch is None or entry.epoch > cache.latest_epoch:
                    cache.assign(*entry)
            return list(cache.entries)
    if history.epochs:
        log.warning("leader_epochs_rebuilt", file=str(path), why=why)
    return list(history.epochs)
