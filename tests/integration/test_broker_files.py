"""Files of brokers that a scenario may damage, on this machine."""

import pytest
from broker_sim_integration.broker_files import DirectoryFiles


@pytest.fixture
def files(tmp_path):
    (tmp_path / "2").mkdir()
    return DirectoryFiles(lambda broker: tmp_path / str(broker))


def test_files_are_made_read_changed_and_removed(files):
    files.write(2, "topic-0/a.log", b"first")
    files.write(2, "topic-0/a.log", b"second")
    files.write(2, "meta.properties", b"")
    assert files.read(2, "topic-0/a.log") == b"second"
    assert files.names(2) == ["meta.properties", "topic-0"]
    assert files.names(2, "topic-0") == ["a.log"]
    files.remove(2, "topic-0/a.log")
    assert files.names(2, "topic-0") == []
    files.remove(2, "topic-0")
    assert files.names(2) == ["meta.properties"]


def test_file_that_is_not_there_cannot_be_removed(files):
    with pytest.raises(FileNotFoundError):
        files.remove(2, "topic-0")
