"""A purgatory in real time: Kafka's own workload, and how late tasks run, idle and busy.

Every figure comes from a process of its own. `out/bench/purgatory_load.md` has the tables.
"""

from bench_purgatory_growth import KAFKA, NATIVE, OUT, label, machine, measure, number, row
from options import Options
from report import OURS, Report

SUITE = "purgatory load"
SUBJECTS = {
    "workload": (OURS, NATIVE, KAFKA),
    "precision": (OURS, NATIVE, "LoopTimer", "asyncio", KAFKA),
}
HIGHER_IS_BETTER = {"rate"}


def run(options: Options, report: Report) -> None:
    """Measure, report, and write the tables."""
    del options  # thousands of requests and tasks are sample enough
    lines = [machine(), ""]
    for what, subjects in SUBJECTS.items():
        found = {subject: measure(report, subject, what) for subject in subjects}
        names = [name for name in found[OURS] if name != "compiled"]
        lines += row([what, *names], rule=True)
        for subject, figures in found.items():
            if figures:
                lines += row([label(subject), *(number(figures[name]) for name in names)])
            for name in names:
                if name in figures:
                    lower = name not in HIGHER_IS_BETTER
                    report.add(SUITE, f"{what}: {name}", "", subject, figures[name], lower=lower)
        lines.append("")
    report.print_suite(SUITE)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "purgatory_load.md").write_text("\n".join(lines), encoding="utf-8")
    report.say(f"tables: {OUT}/purgatory_load.md")
