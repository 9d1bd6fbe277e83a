"""Sizes as users write them, the machine's memory, and giving freed memory back."""

import ctypes
import gc
import os
from pathlib import Path

import pytest

from broker_sim.runtime import memory
from broker_sim.runtime.memory import default_memory_limit, parse_memory_limit, return_freed_memory

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("value", "size"),
    [(1, 1), ("17", 17), ("17B", 17), ("3kb", 3 << 10), ("512MB", 512 << 20), (" 2 GB ", 2 << 30), ("1TB", 1 << 40)],
)
def test_sizes_are_numbers_or_have_a_unit(value, size):
    assert parse_memory_limit(value) == size


@pytest.mark.parametrize("value", [0, -1, True, 1.5, None, "", "0MB", "-1", "2G", "1.5GB", "much"])
def test_other_sizes_are_refused_in_one_line(value):
    with pytest.raises(ValueError, match=r"^memory limit .*: pass bytes, or a size such as 512MB"):
        parse_memory_limit(value)


@pytest.fixture
def without_cache():
    default_memory_limit.cache_clear()
    yield
    default_memory_limit.cache_clear()


def test_limit_is_half_of_the_smallest_of_machine_and_container(without_cache, monkeypatch, tmp_path):
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    container = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "_CONTAINER_LIMITS", (container, tmp_path / "missing"))
    assert default_memory_limit() == machine // 2
    for text, expected in (("max\n", machine // 2), ("1000000\n", 500_000)):
        container.write_text(text)
        default_memory_limit.cache_clear()
        assert default_memory_limit() == expected


def _resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps freed memory")
@pytest.mark.usefixtures("collects_little")
def test_freed_memory_is_given_back():
    # Below malloc's limit for memory of its own, and with a survivor at the end: what is freed
    # stays with the process otherwise.
    blocks = [bytes(64 * 1024) for _ in range(3_000)]
    survivor = bytes(64 * 1024)
    before = _resident_bytes()
    del blocks
    gc.collect()
    assert return_freed_memory()
    assert before - _resident_bytes() > 100 * MEGABYTE
    assert len(survivor) == 64 * 1024
