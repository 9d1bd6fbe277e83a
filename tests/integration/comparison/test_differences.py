import pytest

from integration.comparison.differences import KnownDifference, read_known_differences, reason_for
from integration.scenarios.catalogue import select

TABLE = """\
# Text

| scenario | step | field | reason |
|---|---|---|---|
| `a_*` | any | `bytes` | smaller by nature |
| b | * | timing | slower |

| other | table |
|---|---|
| x | y |
"""


def test_the_rows_of_the_table_are_read(tmp_path):
    document = tmp_path / "differences.md"
    document.write_text(TABLE)
    assert read_known_differences(document) == [
        KnownDifference("a_*", "any", "bytes", "smaller by nature"),
        KnownDifference("b", "*", "timing", "slower"),
    ]


def test_row_of_another_width_is_named_by_its_line(tmp_path):
    document = tmp_path / "differences.md"
    document.write_text(TABLE.replace("| slower", "| slower | than"))
    with pytest.raises(ValueError, match="md:6: 5 cells"):
        read_known_differences(document)


def test_missing_document_has_no_rows(tmp_path):
    assert read_known_differences(tmp_path / "none.md") == []


def test_a_reason_is_found_by_patterns():
    known = [KnownDifference("a_*", "step ?", "*", "because")]
    assert reason_for(known, "a_claim", "step 1", "bytes") == "because"
    assert reason_for(known, "a_claim", "step 12", "bytes") is None


def test_every_row_of_the_shipped_document_fits_a_scenario():
    for row in read_known_differences():
        assert row.reason
        assert select([row.scenario])
