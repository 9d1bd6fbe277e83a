"""What the tests of logs in files share."""

import pytest

from broker_sim.log.storage.open_files import OpenFiles


@pytest.fixture
def looked_at(monkeypatch):
    """The names of the files whose batches were looked at, one after the other."""
    names, real = [], OpenFiles.mapped

    def mapped(self, path):
        names.append(path.name)
        return real(self, path)

    monkeypatch.setattr(OpenFiles, "mapped", mapped)
    return names
