"""Finishes the replacement of segments that a kill has interrupted; part of `LogLoader`.

00000000000000000000.log.cleaned   half-written: deleted
00000000000000000000.log.swap      whole: takes the place of the segments that it was made of
00000000000000000017.log.deleted   deleted, and its delay is over
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.batch_scan import scan_segment
from broker_sim.log.storage.deletions import DELETED_SUFFIX
from broker_sim.log.storage.file_system import ending_with
from broker_sim.log.storage.log_history import LogHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.log.storage.file_system import FileSystem, StoragePath

LOG_SUFFIX: Final = ".log"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"


def base_offsets(files: Iterable[StoragePath]) -> list[int]:
    """Return those of the segments; files that have no offset in their names are not ours."""
    stems = (path.stem for path in ending_with(files, LOG_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def complete_replacements(
    files: Sequence[StoragePath], file_system: FileSystem, delete_segment: Callable[[int], object]
) -> bool:
    """Finish what was begun among the files of a log; return whether there was anything.

    `delete_segment(base_offset)` deletes a replaced segment. Raises OSError.
    """
    swaps = ending_with(files, SWAP_SUFFIX)
    halves = [*ending_with(files, CLEANED_SUFFIX), *ending_with(files, DELETED_SUFFIX)]
    for path in halves:
        path.unlink()
    for swapped in ending_with(swaps, f"{LOG_SUFFIX}{SWAP_SUFFIX}"):
        base_offset = int(swapped.name.partition(".")[0])
        entries = BatchEntries(base_offset, 0)
        scan_segment(swapped, file_system, entries, LogHistory(), verify=False)
        for old in base_offsets(files):
            if base_offset <= old < max(entries.end_offset, base_offset + 1):
                delete_segment(old)
        swapped.rename(swapped.with_name(f"{base_offset:020d}{LOG_SUFFIX}"))
    for path in swaps:
        path.unlink(missing_ok=True)
    return bool(swaps or halves)
