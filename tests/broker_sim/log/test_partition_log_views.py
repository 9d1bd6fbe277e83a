"""Reads that may come as views of files: the same bytes as other reads, over all storages."""

import os

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log.storage import segment_file

SEGMENT_BYTES = 400


@pytest.fixture(autouse=True)
def views_of_all_sizes(monkeypatch):
    monkeypatch.setattr(segment_file, "VIEW_BYTES", 1)


@pytest.fixture
def filled(new_log, batch):
    log = new_log(internal_segment_bytes=SEGMENT_BYTES)
    for number in range(12):
        log.append_as_leader(batch(2, value=b"x" * (number * 7)), 0)
    log.offsets.update_high_watermark(log.log_end_offset)
    assert len(log.segments) > 3
    return log


@pytest.fixture
def has_views(request):
    return "files" in request.node.callspec.params["log_directory"]


def content(data):
    return b"".join(data.records) if data.view is None else data.view.read()


def test_view_has_the_bytes_of_a_read(filled, has_views):
    for offset in range(filled.log_end_offset):
        for max_bytes in (0, 1, 90, 100, 1_000):
            for upper in (None, offset + 1, offset + 4):
                for whole in (False, True):
                    how = {"upper_bound_offset": upper, "min_one_message": whole}
                    read = filled.read(offset, max_bytes, **how)
                    view = filled.read(offset, max_bytes, **how, as_view=True)
                    assert read.view is None
                    assert (view.view is not None) == (has_views and view.size_bytes > 0)
                    assert content(view) == content(read)
                    assert len(content(view)) == view.size_bytes == read.size_bytes
                    assert view.first_entry_incomplete == read.first_entry_incomplete


def test_view_of_the_active_segment_reads_nothing(filled, has_views, monkeypatch):
    if has_views:
        monkeypatch.setattr(os, "pread", None)
    start = filled.segments[-1].base_offset
    assert filled.read(start, 100, min_one_message=True, as_view=True).size_bytes > 0


def test_view_of_a_closed_segment_reads_one_interval(new_log, batch, has_views, read_bytes):
    log = new_log(internal_segment_bytes=100_000, index_interval_bytes=1_000)
    while len(log.segments) < 2:
        log.append_as_leader(batch(value=b"x" * 50), 0)
    read_bytes.clear()
    data = log.read(1, 1 << 20, as_view=True)
    assert data.size_bytes > 90_000
    assert (1_000 < sum(read_bytes) <= 4_096) == has_views


def test_little_is_read(filled, monkeypatch):
    size = filled.read(0, 1_000).size_bytes
    monkeypatch.setattr(segment_file, "VIEW_BYTES", size + 1)
    assert filled.read(0, 1_000, as_view=True).view is None


def test_view_outlives_deletion_and_closing_and_then_closes_the_file(filled, has_views, log_directory):
    if not has_views:
        return
    expected = content(filled.read(0, 1_000))
    data = filled.read(0, 1_000, as_view=True)
    filled.delete_oldest_segments(1)
    due = []
    log_directory.deletions.start(lambda _, *call: due.append(call), 0)
    for delete, path in due:
        delete(path)
    assert not list(filled.storage.directory.glob("*.deleted"))
    filled.storage.close()
    assert content(data) == expected
    descriptor = data.view.descriptor
    del data
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_view_outlives_the_file_that_was_opened_first(filled, has_views, log_directory):
    if not has_views:
        return
    data = filled.read(0, 1_000, as_view=True)
    log_directory.files._most = 1
    expected = [content(filled.read(segment.base_offset, 1_000)) for segment in filled.segments]
    assert content(data) == expected[0]


def test_file_that_is_shorter_than_its_batches_takes_the_log_offline(filled, has_views):
    if not has_views:
        return
    path = filled.storage.directory / f"{0:020d}.log"
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(ApiError) as caught:
        filled.read(0, 1_000, as_view=True)
    assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(ApiError, match="offline"):
        filled.read(filled.segments[1].base_offset, 1_000, as_view=True)
