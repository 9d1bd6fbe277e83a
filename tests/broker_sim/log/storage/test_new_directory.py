"""The directory of a log that is created: what is done there, and what is left out."""

from pathlib import Path

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import TopicConfig
from broker_sim.log.local_log import LocalLog
from broker_sim.log.memory import unlimited_memory
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.storage import FileStorage
from broker_sim.log.storage.deletions import DelayedDeletions
from broker_sim.log.storage.open_files import OpenFiles
from broker_sim.metadata.topic_partition import TopicPartition

TOPIC_PARTITION = TopicPartition("topic", 0)
TOPIC_ID = bytes(range(16))
INDEX = "00000000000000000000.index"


class CountedDirectory:
    """A directory that counts how often it is listed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.listed = 0

    def __str__(self) -> str:
        return str(self.path)

    def __truediv__(self, name):
        return self.path / name

    def mkdir(self):
        self.path.mkdir()

    def iterdir(self):
        self.listed += 1
        return self.path.iterdir()


@pytest.fixture
def directory(tmp_path):
    return CountedDirectory(tmp_path / "topic-0")


@pytest.fixture
def files():
    files = OpenFiles()
    yield files
    files.close_all()


def new_storage(directory, files):
    storage = FileStorage(directory, DelayedDeletions(files))
    storage.create(TOPIC_ID)
    return storage


def create(directory, files):
    storage = new_storage(directory, files)
    PartitionLog(TOPIC_PARTITION, TopicConfig(), VirtualClock(), storage=storage)


def test_new_directory_is_not_searched(directory, files):
    create(directory, files)
    assert directory.listed == 0
    names = sorted(path.name for path in directory.path.iterdir())
    assert names == ["00000000000000000000.log", "partition.metadata"]


def test_existing_directory_is_searched_for_segments(directory, files):
    create(directory, files)
    create(directory, files)
    assert directory.listed == 1


def test_segment_in_the_place_of_the_first_removes_its_indexes(directory, files):
    log = LocalLog(0, unlimited_memory(TOPIC_PARTITION), 4_096, new_storage(directory, files))
    (directory.path / INDEX).write_bytes(b"")
    log.roll(0, 0)
    assert not (directory.path / INDEX).exists()
