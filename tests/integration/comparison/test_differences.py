import pytest
from broker_sim_integration.comparison.differences import KnownDifference, read_known_differences, reason_for
from broker_sim_integration.scenarios.catalogue import CATALOGUE

TABLE = """\
# Text

| scenario | step | field | simulator | reason |
|---|---|---|---|---|
| `a_*` | any | `bytes` | `1?` | smaller by nature |
| `b`, `c` | * | timing | * | slower |

| other | table |
|---|---|
| x | y |
"""
NAMES = {found.name for found in CATALOGUE}


def test_the_rows_of_the_table_are_read_one_per_scenario(tmp_path):
    document = tmp_path / "differences.md"
    document.write_text(TABLE)
    assert read_known_differences(document) == [
        KnownDifference("a_*", "any", "bytes", "1?", "smaller by nature"),
        KnownDifference("b", "*", "timing", "*", "slower"),
        KnownDifference("c", "*", "timing", "*", "slower"),
    ]


def test_row_of_another_width_is_named_by_its_line(tmp_path):
    document = tmp_path / "differences.md"
    document.write_text(TABLE.replace("| slower", "| slower | than"))
    with pytest.raises(ValueError, match="md:6: 6 cells"):
        read_known_differences(document)


def test_missing_document_has_no_rows(tmp_path):
    assert read_known_differences(tmp_path / "none.md") == []


def test_a_reason_is_found_by_patterns():
    known = [KnownDifference("a_*", "step ?", "*", "None", "because")]
    assert reason_for(known, "a_claim", "step 1", "bytes", None) == "because"
    assert reason_for(known, "a_claim", "step 12", "bytes", None) is None


def test_row_hides_only_what_it_says_of_the_simulator():
    known = [KnownDifference("a_claim", "*", "api_keys.8.*", "None", "not served")]
    assert reason_for(known, "a_claim", "step", "api_keys.8.max_version", 9) is None


def test_every_row_of_the_shipped_document_names_one_scenario_and_its_reason():
    for row in read_known_differences():
        assert row.reason
        assert row.scenario in NAMES
        assert row.field != "*"
