"""The cache shows complete directories only, and fills each once."""

import subprocess
import sys
import threading

import pytest
from broker_sim_integration.reference.cache import cache_directory, cached_directory, exclusive
from broker_sim_integration.reference.errors import ReferenceUnavailableError

HOLDER = """
from broker_sim_integration.reference.cache import exclusive
with exclusive("thing", timeout_s=5):
    print("held", flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKER_SIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_cache_directory_is_created_at_the_configured_path(cache):
    assert cache_directory() == cache
    assert cache.is_dir()


def test_default_is_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("BROKER_SIM_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "broker-sim"


def test_two_callers_at_once_fill_it_once():
    fills = []
    found = []
    together = threading.Barrier(2)

    def fill(directory):
        fills.append(directory)
        (directory / "a").write_text("1")

    def call():
        together.wait(60)
        found.append((cached_directory("thing", fill, timeout_s=60) / "a").read_text())

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["1", "1"]
    assert len(fills) == 1


def test_a_failed_fill_leaves_nothing_and_the_next_one_starts_afresh(cache):
    def half(directory):
        (directory / "a").touch()
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone"):
        cached_directory("thing", half, timeout_s=5)
    assert [path.name for path in cache.iterdir()] == ["thing.lock"]
    assert list(cached_directory("thing", lambda _: None, timeout_s=5).iterdir()) == []


def test_a_lock_that_another_process_holds_ends_the_wait_with_its_name():
    lines = []
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        held = r"another process has held .*thing\.lock for 1 s"
        with (
            pytest.raises(ReferenceUnavailableError, match=held),
            exclusive("thing", timeout_s=1, progress=lines.append),
        ):
            pass
        holder.communicate(b"\n", timeout=60)
    assert lines == ["waiting for another process that makes thing"]
    with exclusive("thing", timeout_s=1):
        pass
