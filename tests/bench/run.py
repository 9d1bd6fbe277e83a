"""Measure the simulator beside its peers: `python tests/bench/run.py [SUITE ...]`.

A suite is a module `bench_<name>.py` here with `run(options, report)`; all run unless some are
named. Figures are ratios of one run on one machine, and no test asserts them. With `--tiny` every
suite only shows that it runs.
"""

import argparse
import importlib
import sys
from pathlib import Path

from options import Options
from report import Report

ROUNDS = 7
HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def main() -> None:
    """Run the command line."""
    names = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(names))
    parser.add_argument("--rounds", type=int, help=f"the median of them counts (default {ROUNDS})")
    parser.add_argument("--kafka", action="store_true", help="with the real Kafka (needs Java)")
    parser.add_argument("--tiny", action="store_true", help="only show that the suites run")
    parser.add_argument("--peers", action="store_true", help="with --tiny: with all the peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.suites) - set(names))
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(names)}")
    if arguments.peers and not arguments.tiny:
        parser.error("--peers goes with --tiny; a full run has all peers but Kafka (--kafka)")
    sys.path.insert(0, str(ROOT))
    report = Report(tiny=arguments.tiny)
    rounds = arguments.rounds or (1 if arguments.tiny else ROUNDS)
    options = Options(
        rounds=max(rounds, 1),
        kafka=arguments.kafka or arguments.peers,
        tiny=arguments.tiny,
        peers=arguments.peers or not arguments.tiny,
    )
    if options.tiny:
        report.say("tiny counts: this shows that the suites run, its figures say nothing")
    for name in arguments.suites or names:
        importlib.import_module(f"bench_{name}").run(options, report)
    if not options.tiny:
        report.print_bars()
    if arguments.json is not None:
        report.write_json(arguments.json)


if __name__ == "__main__":
    main()
