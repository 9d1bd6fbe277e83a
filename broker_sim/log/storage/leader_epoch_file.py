"""The file `leader-epoch-checkpoint`; mirrors `LeaderEpochCheckpointFile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.log.leader_epoch_cache import EpochEntry
from broker_sim.log.storage.checkpoint_file import read_lines

if TYPE_CHECKING:
    from broker_sim.log.storage.file_system import StoragePath

__all__ = ["LEADER_EPOCHS", "read_leader_epochs"]

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
