"""What `run.py` was asked for; every suite gets it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

OUT = Path(__file__).parents[2] / "out" / "bench"
Sizes = TypeVar("Sizes")


@dataclass(frozen=True)
class Options:
    """The command line of the benchmarks."""

    rounds: int
    """Number of rounds in which everything is measured in turns; the median counts."""
    kafka: bool
    """Whether the real Kafka takes part where it takes long to start."""
    tiny: bool
    """Whether a suite only shows that it runs, in a second or two."""
    peers: bool
    """Whether peers take part that have to be built or fetched, or run on Java."""

    def choose(self, full: Sizes, tiny: Sizes) -> Sizes:
        """Return the counts and sizes of this run."""
        return tiny if self.tiny else full

    @property
    def out(self) -> Path:
        """Return where suites write files; a tiny run leaves those of a full one alone."""
        return OUT / "tiny" if self.tiny else OUT
