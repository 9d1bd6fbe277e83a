import io
import json

import pytest
from rich.console import Console

from integration.comparison.differences import KnownDifference
from integration.comparison.lateness import TOLERANCE_MS, TOLERANCE_REASON, compare_lateness
from integration.comparison.runs import Run
from integration.report.html_page import html_page
from integration.report.markdown import markdown
from integration.report.report import Report, documented_reasons, write_json, write_observations
from integration.report.terminal import print_report, result_line


@pytest.fixture
def report_of(result_of):
    def make(*results):
        return Report(
            run_id="run",
            catalogue_version="abc",
            reference="jvm",
            reason="asked for",
            facts={"kafka_version": "4.3.1"},
            results=list(results),
            lateness=compare_lateness(results),
        )

    return make


@pytest.fixture
def agreed(result_of, see):
    return result_of(([see()], [see()]), name="agreed")


@pytest.fixture
def differed(result_of, see):
    return result_of(([see(error_code=7)], [see(error_code="<6>|")]), name="differed")


@pytest.fixture
def troubled(result_of):
    return result_of((Run(trouble="no brokers"), Run()), name="troubled")


def test_exit_code_0_only_when_all_agree(report_of, agreed):
    assert report_of(agreed).exit_code == 0


def test_exit_code_1_for_a_difference(report_of, agreed, differed):
    assert report_of(agreed, differed).exit_code == 1


def test_exit_code_2_for_trouble_with_the_reference(report_of, differed, troubled):
    assert report_of(differed, troubled).exit_code == 2


def test_both_sides_observations_are_one_json_line_each(report_of, agreed, tmp_path):
    path = tmp_path / "observations.jsonl"
    write_observations(report_of(agreed), path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["side"] for line in lines] == ["kafka", "sim"]
    assert {(line["run_id"], line["scenario"], line["step"]) for line in lines} == {
        ("run", "agreed", "step")
    }


def test_the_json_report_names_every_difference(report_of, agreed, differed, tmp_path):
    path = tmp_path / "report.json"
    write_json(report_of(agreed, differed), path)
    document = json.loads(path.read_text())
    assert document["verdicts"] == {"agreed": 1, "differed": 1}
    assert document["exit_code"] == 1
    (found,) = document["scenarios"][1]["differences"]
    assert (found["field"], found["kafka"], found["sim"]) == ("error_code", 7, "<6>|")


def test_the_markdown_report_escapes_what_breaks_a_table(report_of, differed):
    text = markdown(report_of(differed))
    assert "| differed | step | error_code | 7 | <6>\\| |" in text


def test_the_html_page_escapes_answers_and_needs_no_network(report_of, agreed, differed, troubled):
    page = html_page(report_of(agreed, differed, troubled))
    assert "&lt;6&gt;" in page
    assert "<6>" not in page
    assert "http" not in page
    assert "no brokers" in page


def test_the_terminal_shows_verdicts_and_differences(report_of, agreed, differed, troubled):
    out = io.StringIO()
    print_report(report_of(agreed, differed, troubled), Console(file=out, width=200))
    shown = out.getvalue()
    assert "1 agreed, 1 differed, 1 reference trouble" in shown
    assert "no brokers" in shown


def test_documented_differences_are_summed_up_by_reason(report_of, result_of, see):
    known = [KnownDifference("*", "*", "bytes", "by nature")]
    pair = ([see(bytes=1), see("b", bytes=1)], [see(bytes=2), see("b", bytes=2)])
    report = report_of(result_of(pair, name="known", known=known))
    assert report.exit_code == 0
    assert documented_reasons(report) == {"by nature": 2}
    assert "| 2 | by nature |" in markdown(report)
    out = io.StringIO()
    print_report(report, Console(file=out, width=200))
    assert "by nature" in out.getvalue()
    assert "1 documented" in out.getvalue()


def test_a_flaky_scenario_fails_and_every_report_has_its_counts(report_of, result_of, see):
    same, other = ([see()], [see()]), ([see()], [see(error_code=7)])
    report = report_of(result_of(same, other, same, name="now_and_then"))
    assert report.exit_code == 1
    counts = "1 of 3 repeats differ"
    assert f"| now_and_then |  | flaky | {counts} |  |" in markdown(report)
    assert counts in html_page(report)
    assert counts in result_line(report.results[0])


def test_the_reports_give_the_tolerance_and_its_reason(report_of, agreed):
    out = io.StringIO()
    print_report(report_of(agreed), Console(file=out, width=200))
    texts = (markdown(report_of(agreed)), html_page(report_of(agreed)), out.getvalue())
    for text in map(" ".join, map(str.split, texts)):
        assert f"{TOLERANCE_MS:g}" in text
        assert TOLERANCE_REASON in text
