"""The storage of a log's segments: memory, or the files of Kafka's log directories."""

from broker_sim.log.storage.batch_entries import BatchEntries
from broker_sim.log.storage.batch_scan import MAX_RELATIVE_OFFSET
from broker_sim.log.storage.checkpoint_files import PARTITION_METADATA
from broker_sim.log.storage.files import FileStorage
from broker_sim.log.storage.guard import suppress_storage_error
from broker_sim.log.storage.index_files import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, SegmentIndexes
from broker_sim.log.storage.interface import Batches, LogStorage, SegmentContent
from broker_sim.log.storage.log_directory import LogDirectory, LogDirectoryError, first_log, lock_directory
from broker_sim.log.storage.memory import MemoryBatches, MemoryStorage
from broker_sim.log.storage.simulated_disk import DiskOptions, SimulatedDisk

__all__ = [
    "MAX_RELATIVE_OFFSET",
    "OFFSET_ENTRY_BYTES",
    "PARTITION_METADATA",
    "TIME_ENTRY_BYTES",
    "BatchEntries",
    "Batches",
    "DiskOptions",
    "FileStorage",
    "LogDirectory",
    "LogDirectoryError",
    "LogStorage",
    "MemoryBatches",
    "MemoryStorage",
    "SegmentContent",
    "SegmentIndexes",
    "SimulatedDisk",
    "first_log",
    "lock_directory",
    "suppress_storage_error",
]
