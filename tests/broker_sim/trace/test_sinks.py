import gzip

import pytest

from broker_sim.trace.sinks import FileSink


@pytest.mark.parametrize(("name", "opened"), [("t.jsonl", open), ("t.jsonl.gz", gzip.open)])
def test_file_has_one_line_for_each(tmp_path, name, opened):
    sink = FileSink(tmp_path / name)
    sink.write(["a", "ö"])
    sink.write(["b"])
    sink.close()
    with opened(tmp_path / name, "rt", encoding="utf-8") as file:
        assert file.read() == "a\nö\nb\n"


def test_plain_file_has_its_lines_before_it_is_closed(tmp_path):
    sink = FileSink(tmp_path / "t.jsonl")
    sink.write(["a"])
    assert (tmp_path / "t.jsonl").read_text() == "a\n"
    sink.close()


def test_file_that_cannot_be_opened_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileSink(tmp_path / "missing" / "t.jsonl")
