"""The comparison as one HTML page that needs no network: failures, lateness, verdicts."""

from __future__ import annotations

import html
import json
from collections import Counter
from typing import TYPE_CHECKING

from broker_sim.page.files import report_style
from broker_sim_integration.comparison.distribution import RULE
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.report.lateness_rows import lateness_rows
from broker_sim_integration.report.report import FAULTS, undocumented, unused_rows
from broker_sim_integration.report.timing_plot import timing_plot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from broker_sim_integration.comparison.runs import Run
    from broker_sim_integration.comparison.verdict import Difference, ScenarioResult
    from broker_sim_integration.report.report import Report

FAILED = frozenset({*FAULTS, Verdict.REFERENCE_TROUBLE, Verdict.REFERENCE_LATE})
STYLE = f"""{report_style()}
body {{ max-width: 1120px; margin: 32px auto; padding: 0 20px; }}
h1 {{ font-size: 26px; }} h2 {{ margin: 32px 0 8px; font-size: 19px; }} h3 {{ margin: 20px 0 6px; }}
h1 ~ p, details p {{ margin: 8px 0; overflow-wrap: anywhere; }}
table {{ width: auto; margin: 12px 0; background: var(--panel); border: 1px solid var(--line); }}
td {{ vertical-align: top; }}
pre {{ font: 13px/1.4 ui-monospace, monospace; background: var(--panel); border: 1px solid var(--line);
  padding: 10px 14px; border-radius: 8px; white-space: pre-wrap; overflow-wrap: anywhere; }}
.pair {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: 16px; }}
.verdict {{ padding: 0 8px; border-radius: 99px; border: 1px solid; font-size: 12.5px; font-weight: 600;
  white-space: nowrap; }}
.agreed {{ color: var(--good); }} .documented {{ color: var(--warn); }} .flaky {{ color: var(--purgatory-3); }}
.differed, .late, .reference-trouble, .reference-late {{ color: var(--bad); }} .not-played {{ color: var(--soft); }}
summary {{ cursor: pointer; padding: 3px 0; }}
"""


def write_html(report: Report, path: Path) -> None:
    """Write `html_page` to a file."""
    path.write_text(html_page(report), encoding="utf-8")


def html_page(report: Report) -> str:
    """Return the complete page."""
    kafka = html.escape(str(report.facts.get("kafka_version", "unknown")))
    return "".join(
        (
            "<!doctype html><html lang=en><meta charset=utf-8>",
            "<meta name=viewport content='width=device-width'>",
            f"<title>Simulator and Kafka {kafka}</title><style>{STYLE}</style>",
            f"<h1>The simulator and Kafka {kafka}</h1>",
            f"<p>Reference: {html.escape(report.reference)} ({html.escape(report.reason)}). ",
            f"Catalogue {report.catalogue_version}, run {report.run_id}.</p>",
            *_summary(report),
            *_lateness(report),
            *_families(report),
            *_not_played(report),
            *_scenarios(report.results),
            f"<h2>The reference</h2><pre>{_json(report.facts)}</pre>\n",
            f"<h2>The simulator</h2><pre>{_json(report.simulator)}</pre></html>\n",
        )
    )


def _summary(report: Report) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in report.counts().items())
    failures = report.failures()
    if failures:
        yield f"<h2>Failed</h2><p>{counts}.</p><table><tr><th>scenario<th>step<th>why"
        for failure in failures:
            cells = map(html.escape, (failure.scenario, failure.step, failure.why))
            yield "<tr><td>" + "<td>".join(cells)
        yield "</table>"
    else:
        result = "All that was played agrees" if report.played else "Nothing was played"
        yield f"<h2>{result}</h2><p>{counts}.</p>"
    for row in unused_rows(report.known, report.results):
        place = html.escape(f"{row.scenario}, {row.step}, {row.field}")
        yield f"<p>This row of docs/reference/differences.md fits nothing any more: {place}</p>"


def _not_played(report: Report) -> Iterator[str]:
    reasons = report.not_played()
    if reasons:
        yield "<h2>Not played</h2>"
    for reason, names in reasons.items():
        yield f"<details><summary>{len(names)}: {html.escape(reason)}</summary><p>"
        yield ", ".join(f"<code>{name}</code>" for name in names)
        yield "</details>"


def _families(report: Report) -> Iterator[str]:
    columns = [verdict for verdict in Verdict if report.counts()[verdict]]
    yield "<h2>Families</h2><table><tr><th>family"
    yield from (f"<th>{_badge(verdict)}" for verdict in columns)
    for family, verdicts in report.families().items():
        yield f"<tr><td>{family}"
        yield from (f"<td class=number>{verdicts[verdict] or ''}" for verdict in columns)
    yield "</table>"


def _lateness(report: Report) -> Iterator[str]:
    yield "<h2>Lateness</h2><p>How long after they were due the answers came, in ms. The "
    yield f"rule: {RULE}. Strokes are answers, bars their p50 and p95.</p>"
    yield timing_plot(lateness_rows(report.results, report.lateness))
    yield "<table><tr><th>answers<th>side<th>count<th>p50<th>p95<th>p99<th>max<th>judged"
    for compared in report.lateness:
        for side, lateness in (("Kafka", compared.kafka), ("simulator", compared.sim)):
            numbers = (lateness.count, lateness.p50, lateness.p95, lateness.p99, lateness.maximum)
            yield f"<tr><td>{html.escape(compared.name)}<td>{side}"
            yield from (f"<td class=number>{number:g}" for number in numbers)
            yield f"<td>{html.escape(compared.reason or compared.verdict)}"
    yield "</table>"


def _scenarios(results: Sequence[ScenarioResult]) -> Iterator[str]:
    yield "<h2>Scenarios</h2>"
    failed = [result for result in results if result.verdict in FAILED]
    if failed:
        yield "<h3>failed</h3>"
        for result in failed:
            yield from _scenario(result)
    family = ""
    for result in results:
        if result.verdict in FAILED or result.verdict is Verdict.NOT_PLAYED:
            continue
        if result.scenario.family != family:
            family = result.scenario.family
            yield f"<h3>{family}</h3>"
        yield from _scenario(result)


def _scenario(result: ScenarioResult) -> Iterator[str]:
    is_open = " open" if result.verdict in FAILED else ""
    yield f"<details{is_open}><summary>{_badge(result.verdict)} "
    yield f"<code>{result.scenario.name}</code> {result.flakiness}</summary>"
    yield f"<p>{html.escape(result.scenario.description)} "
    yield f"<i>{html.escape(result.scenario.topology)}</i></p>"
    yield from _differences(result)
    yield "</details>"


def _differences(result: ScenarioResult) -> Iterator[str]:
    if result.trouble:
        yield f"<p>{html.escape(result.trouble)}</p>"
    seen: set[tuple[str, int, int]] = set()
    for difference in undocumented(result):
        yield f"<p><b>{html.escape(difference.step)}</b> #{difference.attempt}, {html.escape(difference.field)}: "
        yield f"Kafka <code>{html.escape(str(difference.kafka))}</code>, "
        yield f"simulator <code>{html.escape(str(difference.sim))}</code></p>"
        key = (difference.step, difference.attempt, difference.repeat)
        if key not in seen:
            seen.add(key)
            yield from _both(result, difference)
    reasons = Counter(difference.reason for difference in result.differences if difference.reason)
    for reason, count in reasons.most_common():
        yield f"<p>{count} documented: <i>{html.escape(reason)}</i></p>"


def _both(result: ScenarioResult, difference: Difference) -> Iterator[str]:
    yield "<div class=pair>"
    for side, runs in (("Kafka", result.kafka), ("simulator", result.sim)):
        yield f"<div>{side}<pre>{_observation(runs, difference)}</pre></div>"
    yield "</div>"


def _observation(runs: Sequence[Run], difference: Difference) -> str:
    for observation in runs[difference.repeat - 1].observations:
        if (observation.step, observation.attempt) == (difference.step, difference.attempt):
            return _json(observation.to_json())
    return "nothing"


def _badge(verdict: Verdict) -> str:
    return f"<span class='verdict {verdict.value.replace(' ', '-')}'>{verdict.value}</span>"


def _json(value: object) -> str:
    return html.escape(json.dumps(value, indent=1, ensure_ascii=False))
