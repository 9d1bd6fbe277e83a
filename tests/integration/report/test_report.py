import io
import json
import re
from dataclasses import replace

import pytest
from broker_sim_integration.comparison.differences import KnownDifference
from broker_sim_integration.comparison.distribution import RULE, Distribution, Machines
from broker_sim_integration.comparison.lateness import compare_lateness
from broker_sim_integration.comparison.runs import Run
from broker_sim_integration.observations import at_timeout
from broker_sim_integration.report.html_page import html_page
from broker_sim_integration.report.markdown import markdown
from broker_sim_integration.report.report import (
    Failure,
    Report,
    documented_reasons,
    unused_rows,
    write_json,
    write_observations,
)
from broker_sim_integration.report.terminal import print_report, result_line
from rich.console import Console

from broker_sim.page.files import report_style


@pytest.fixture
def report_of(result_of):
    def make(*results, known=()):
        return Report(
            run_id="run",
            catalogue_version="abc",
            reference="jvm",
            reason="as requested",
            facts={"kafka_version": "4.3.1"},
            results=list(results),
            lateness=compare_lateness(results, Machines()),
            machines=Machines(),
            known=known,
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


@pytest.fixture
def not_played(result_of):
    return result_of((Run(skipped="needs disconnect"), Run()), name="not_played")


@pytest.fixture
def printed():
    """Return a function that returns what is printed about a report."""

    def printed(report):
        out = io.StringIO()
        print_report(report, Console(file=out, width=200))
        return out.getvalue()

    return printed


def test_what_was_not_played_fails_nothing(report_of, agreed, not_played, printed):
    report = report_of(agreed, not_played)
    assert report.exit_code == 0
    assert report.failures() == []
    assert report.not_played() == {"needs disconnect": ["not_played"]}
    shown = printed(report)
    assert "Differences" not in shown
    assert "not played: 1 (needs disconnect)\n  not_played" in shown
    assert "all that was played agrees" in shown.splitlines()[-1]
    assert "- needs disconnect: `not_played`" in markdown(report)
    assert "1: needs disconnect" in html_page(report)


@pytest.mark.parametrize(("woken_ms", "told"), [(2.9, False), (3.0, True)])
def test_busy_machine_is_reported_if_only_times_differ(report_of, result_of, see, differed, printed, woken_ms, told):
    timing = {"timing": at_timeout(100)}
    late = result_of(([see(elapsed_ms=101, **timing)], [see(elapsed_ms=900, **timing)]), name="late")
    machines = Machines(sim=Distribution(100, 0.1, woken_ms, woken_ms, woken_ms))

    def says_busy(*results):
        return "machine was busy" in printed(replace(report_of(*results), machines=machines))

    assert says_busy(late) == told
    assert not says_busy(late, differed)


def test_nothing_played_is_an_error(report_of, not_played, printed):
    report = report_of(not_played)
    assert report.exit_code == 2
    assert printed(report).splitlines()[-1] == "nothing was played"
    assert "Nothing was played" in html_page(report)


def test_the_summary_names_every_failed_step_once_with_the_reason(report_of, result_of, see):
    pair = (
        [see("a", error_code=7, base_offset=3), see("b"), see("a", attempt=2)],
        [see("a", error_code=6, base_offset=4), see("b"), see("a", attempt=2, error_code=9)],
    )
    report = report_of(result_of(pair, name="claim"), result_of(pair, name="other"))
    assert report.failures()[0] == Failure("claim", "a", "error_code: Kafka 7, simulator 6, and 2 more")
    assert [(one.scenario, one.step) for one in report.failures()] == [("claim", "a"), ("other", "a")]


def test_the_summary_names_trouble_of_either_side(report_of, result_of, troubled):
    broken = result_of((Run(), Run(trouble="it crashed")), name="broken")
    failures = report_of(troubled, broken).failures()
    assert [(one.scenario, one.why) for one in failures] == [
        ("troubled", "Kafka: no brokers"),
        ("broken", "simulator: it crashed"),
    ]


def test_a_late_distribution_is_in_the_summary_and_fails(report_of, result_of, see, printed):
    def seen(late_ms):
        return [see("w", 20 + late_ms, timing=at_timeout(20), attempt=n) for n in range(1, 101)]

    report = report_of(result_of((seen(1), seen(30)), name="waits"))
    (failure,) = report.failures()
    assert (failure.scenario, failure.step) == ("waits", "w")
    assert "p50 29.0 ms later than Kafka's" in failure.why
    assert report.exit_code == 1
    assert "failed waits / w: lateness: Kafka p50 1 ms" in printed(report)


def test_lateness_of_single_answers_together_is_in_the_summary(report_of, result_of, see):
    def seen(late_ms):
        return [see(f"w {n}", 20 + late_ms + n / 100, timing=at_timeout(20)) for n in range(30)]

    (failure,) = report_of(result_of((seen(1), seen(30)), name="waits")).failures()
    assert failure.scenario == "all at_timeout"
    assert "p50 29.0 ms later" in failure.why


def test_failures_come_first_in_the_page(report_of, agreed, differed):
    page = html_page(report_of(agreed, differed))
    assert page.index("<h2>Failed") < page.index("<h2>Lateness") < page.index("<h2>Scenarios")
    scenarios = page[page.index("<h2>Scenarios") :]
    assert scenarios.index("<code>differed") < scenarios.index("<code>agreed")


def test_unused_rows_are_reported_if_their_scenario_was_played(report_of, agreed, result_of, see, printed):
    used = KnownDifference("known", "step", "bytes", "2", "by nature")
    unused = KnownDifference("agreed", "step", "bytes", "2", "once so")
    elsewhere = KnownDifference("not_in_this_run", "step", "bytes", "2", "by nature")
    known = result_of(([see(bytes=1)], [see(bytes=2)]), name="known", known=[used])
    report = report_of(agreed, known, known=[used, unused, elsewhere])
    assert unused_rows(report.known, report.results) == [unused]
    assert "fits nothing any more: agreed, step, bytes" in printed(report)
    assert report.exit_code == 0


def test_exit_code_1_for_a_difference(report_of, agreed, differed):
    assert report_of(agreed, differed).exit_code == 1


def test_exit_code_2_for_trouble_with_the_reference(report_of, differed, troubled):
    assert report_of(differed, troubled).exit_code == 2


def test_both_sides_observations_are_one_json_line_each(report_of, agreed, tmp_path):
    path = tmp_path / "observations.jsonl"
    write_observations(report_of(agreed), path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["side"] for line in lines] == ["kafka", "sim"]
    assert {(line["run_id"], line["scenario"], line["step"]) for line in lines} == {("run", "agreed", "step")}


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


def test_the_html_page_has_the_look_of_the_page_of_a_cluster(report_of, agreed):
    page = html_page(report_of(agreed))
    assert report_style() in page
    named = set(re.findall(r"var\((--[\w-]+)\)", page))
    assert named <= set(re.findall(r"(--[\w-]+):", page))


def test_the_terminal_shows_verdicts_and_differences(report_of, agreed, differed, troubled, printed):
    shown = printed(report_of(agreed, differed, troubled))
    assert "1 agreed, 1 differed, 1 reference trouble" in shown
    assert "no brokers" in shown


def test_documented_differences_are_summed_up_by_reason(report_of, result_of, see, printed):
    known = [KnownDifference("*", "*", "bytes", "*", "by nature")]
    pair = ([see(bytes=1), see("b", bytes=1)], [see(bytes=2), see("b", bytes=2)])
    report = report_of(result_of(pair, name="known", known=known))
    assert report.exit_code == 0
    assert documented_reasons(report) == {"by nature": 2}
    assert "| 2 | by nature |" in markdown(report)
    assert "by nature" in printed(report)
    assert "1 documented" in printed(report)


def test_a_flaky_scenario_fails_and_every_report_has_its_counts(report_of, result_of, see):
    same, other = ([see()], [see()]), ([see()], [see(error_code=7)])
    report = report_of(result_of(same, other, same, name="now_and_then"))
    assert report.exit_code == 1
    counts = "1 of 3 repeats differ"
    assert f"| now_and_then |  | flaky | {counts} |  |" in markdown(report)
    assert counts in html_page(report)
    assert counts in result_line(report.results[0])


def test_the_reports_give_the_tolerance_and_its_reason(report_of, agreed, printed):
    report = report_of(agreed)
    texts = (markdown(report), html_page(report), printed(report))
    for text in map(" ".join, map(str.split, texts)):
        assert RULE in text


def test_a_late_kafka_is_no_difference_but_trouble(report_of, result_of, see, agreed, differed):
    late = result_of(([see(elapsed_ms=400.0)], [see()]), name="late")
    assert report_of(agreed, late).exit_code == 2
    (failure,) = report_of(agreed, late).failures()
    assert failure.why.startswith("not judged, Kafka late in 1 of 1: step #1: 400.0 ms")
    assert report_of(differed, late).exit_code == 1
