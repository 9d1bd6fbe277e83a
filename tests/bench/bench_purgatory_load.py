"""A purgatory in real time: Kafka's own workload, and how late tasks run, idle and busy.

Every figure comes from a process of its own. `out/bench/purgatory_load.md` has the tables.
"""

from bench_purgatory_growth import KAFKA, NATIVE, label, machine, measure, number, row
from options import Options
from report import OURS, Report

SUITE = "purgatory load"
SUBJECTS = {"workload": (OURS, NATIVE, KAFKA), "precision": (OURS, NATIVE, "LoopTimer", "asyncio", KAFKA)}
FULL = {"workload": 20_000, "precision": 1_000}
TINY = {"workload": 200, "precision": 20}
"""Number of requests and of timed tasks; Java always takes those of a full run."""
HIGHER_IS_BETTER = {"rate"}


def run(options: Options, report: Report) -> None:
    """Measure, report, and write the tables."""
    counts = options.choose(FULL, TINY)  # sample enough for one round
    lines = [machine(), ""]
    for what, subjects in SUBJECTS.items():
        found = {
            subject: measure(report, subject, what, counts[what])
            for subject in subjects
            if subject != KAFKA or options.peers
        }
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
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "purgatory_load.md").write_text("\n".join(lines), encoding="utf-8")
    report.say(f"tables: {options.out}/purgatory_load.md")
