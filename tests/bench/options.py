"""What `run.py` was asked for; every suite gets it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The command line of the benchmarks."""

    rounds: int
    """How often everything is measured, in turns; the median counts."""
    kafka: bool
    """Whether the real Kafka takes part where it takes long to start."""
