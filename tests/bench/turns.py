"""Peers that are measured in turns, one running at a time, and the medians of what was measured on each."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from statistics import median

from options import Options
from peers import Peer, PeerMissingError, kafka, kfake, simulator
from report import Report

Start = Callable[[], AbstractContextManager[Peer]]


class Samples:
    """Figures of several rounds, by what was measured and on whom."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str, bool], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, peer: str, name: str, unit: str, value: float, *, lower: bool) -> None:
        """Note one figure; `lower` says that less is better."""
        self._figures[name, unit, lower][peer].append(value)

    def report_medians(self, report: Report, suite: str) -> None:
        """Tell the median of each figure."""
        for (name, unit, lower), values in self._figures.items():
            for peer, figures in values.items():
                report.add(suite, name, unit, peer, median(figures), lower=lower)


def starters(options: Options, configs: Mapping[str, str]) -> list[Start]:
    """Return what starts each peer that takes part; kfake takes no configurations."""
    given = [word for item in configs.items() for word in ("--config", "=".join(item))]
    return [
        partial(simulator, *given),
        *([kfake] if options.peers else []),
        *([partial(kafka, configs)] if options.kafka else []),
    ]


def measure_in_turns(
    starts: Iterable[Start], rounds: int, measure: Callable[[Peer, Samples], object], report: Report
) -> Samples:
    """Measure every peer once in each round, in the other order in every second one."""
    order = list(starts)
    samples = Samples()
    for index in range(rounds):
        for start in order[:: 1 if index % 2 == 0 else -1]:
            try:
                with start() as peer:
                    measure(peer, samples)
            except PeerMissingError as missing:
                report.say(f"missing: {missing}")
    return samples
