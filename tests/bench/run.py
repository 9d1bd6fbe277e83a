"""Measure the simulator beside its peers: `python tests/bench/run.py [SUITE ...]`.

A suite is a module `bench_<name>.py` here with `run(options, report)`; all run unless some are
named. Figures are ratios of one run on one machine, and no test asserts them.
"""

import argparse
import importlib
import sys
from pathlib import Path

from options import Options
from report import Report

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def main() -> None:
    """Run the command line."""
    names = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=7, help="the median of them counts")
    parser.add_argument("--kafka", action="store_true", help="with the real Kafka (needs Java)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.suites) - set(names))
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(names)}")
    sys.path.insert(0, str(ROOT))
    report = Report()
    options = Options(max(arguments.rounds, 1), arguments.kafka)
    for name in arguments.suites or names:
        importlib.import_module(f"bench_{name}").run(options, report)
    report.print_bars()
    if arguments.json is not None:
        report.write_json(arguments.json)


if __name__ == "__main__":
    main()
