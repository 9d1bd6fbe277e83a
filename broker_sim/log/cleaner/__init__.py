"""The log cleaner: of the records with the same key it keeps the last one.

    log start            first dirty offset              active segment     log end
        │  clean (tail)          │   dirty (head)              │  not cleanable │
    ────┴────────────────────────┴─────────────────────────────┴────────────────┴──▶ offsets

    manager.py               the choice of the dirtiest log and of its cleanable part
    log_cleaner.py           the threads: one cleaning after the other, in small steps
    cleaner.py               one cleaning: map the keys of the dirty part, then copy the retained records
    batch_filter.py          the retained records of one batch, and aborted transactions

Offsets never change, so gaps appear; a fetch from a removed offset begins with the next one.
"""

from broker_sim.log.cleaner.batch_filter import CleanerStats
from broker_sim.log.cleaner.log_cleaner import LogCleaner
from broker_sim.log.cleaner.manager import LogCleanerManager

__all__ = ["CleanerStats", "LogCleaner", "LogCleanerManager"]
