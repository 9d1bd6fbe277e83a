"""The log cleaner: of the records with the same key it keeps the last one.

    log start            first dirty offset              active segment     log end
        │  clean (tail)          │   dirty (head)              │  not cleanable │
    ────┴────────────────────────┴─────────────────────────────┴────────────────┴──▶ offsets

    manager.py               which log is the dirtiest, and up to where it may be cleaned
    log_cleaner.py           the threads: one cleaning after the other, in small steps
    cleaner.py               one cleaning: map the dirty part's keys, then copy what stays
    batch_filter.py          what stays of one batch
    cleaned_transactions.py  which transactions were aborted, and which have no records any more

Offsets never change, so they get gaps; a fetch from one that is gone begins with the next.
"""

from broker_sim.log.cleaner.batch_filter import CleanerStats
from broker_sim.log.cleaner.log_cleaner import LogCleaner
from broker_sim.log.cleaner.manager import LogCleanerManager

__all__ = ["CleanerStats", "LogCleaner", "LogCleanerManager"]
