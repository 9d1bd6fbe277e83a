"""A run of the fuzzer: clusters of both sides for each set of configurations, and all seeds on them."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.cluster_under_test.running_cluster import BROKERS, kafka_cluster, simulated_cluster
from broker_sim_integration.fuzz.areas.area import WAVE
from broker_sim_integration.fuzz.fuzzer import Fuzzer
from broker_sim_integration.fuzz.side import fuzzed_side
from broker_sim_integration.reference.clusters.node_config import COMMON_CONFIGS
from broker_sim_integration.reference.errors import ReferenceClusterError
from broker_sim_integration.reference.selection import ReferenceKind
from broker_sim_integration.simulator.process import SimulatorProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Sequence as Several

    from broker_sim_integration.cluster_under_test.running_cluster import RunningCluster
    from broker_sim_integration.fuzz.areas.area import Area
    from broker_sim_integration.fuzz.difference import KnownFuzzDifference
    from broker_sim_integration.fuzz.fuzzer import Finding
    from broker_sim_integration.fuzz.sequence import Sequence
    from broker_sim_integration.reference.progress import Progress
    from broker_sim_integration.reference.selection import Selection
    from broker_sim_integration.simulator.command import SimulatorCommand


@dataclass(slots=True)
class Totals:
    """The results of a run so far."""

    sequences: int = 0
    by_chance: int = 0
    different: list[Finding] = field(default_factory=list)
    troubles: list[Finding] = field(default_factory=list)
    plays: int = 0
    elapsed_ms: float = 0.0
    """Duration without the start of the clusters."""

    @property
    def exit_code(self) -> int:
        """0 if all outcomes agree, 1 for a difference, 2 for a failure."""
        return 1 if self.different else 2 if self.troubles else 0

    def __str__(self) -> str:
        per_s = self.sequences / max(self.elapsed_ms / 1000, 0.001)
        return (
            f"{self.sequences} sequences in {self.elapsed_ms / 1000:.0f} s ({per_s:.1f}/s): "
            f"{len(self.different)} differ, {self.by_chance} by chance only, "
            f"{len(self.troubles)} not played to their end"
        )


@dataclass(slots=True)
class FuzzRun:
    """The sides and the settings of a run."""

    selection: Selection
    simulator: SimulatorCommand
    known: Several[KnownFuzzDifference]
    progress: Progress
    at_once: int
    """Number of sequences played at the same time in areas without faults."""
    shrinks: bool = True

    def play(self, drawn: Several[tuple[Area, Several[Sequence]]], on_finding: Callable[[Finding], None]) -> Totals:
        """Play the sequences of each area; `on_finding` gets each result."""
        totals = Totals()
        by_configs = sorted(drawn, key=lambda one: sorted(one[0].configs.items()))
        for configs, group in groupby(by_configs, key=lambda one: dict(one[0].configs)):
            with self._clusters(configs) as (kafka, sim):
                for area, sequences in group:
                    began_ms = now_ms()
                    for finding in asyncio.run(self._play_area(area, sequences, kafka, sim, on_finding, totals)):
                        _count(totals, finding)
                    totals.elapsed_ms += now_ms() - began_ms
        return totals

    @contextmanager
    def _clusters(self, configs: dict[str, str]) -> Iterator[tuple[RunningCluster, RunningCluster]]:
        theirs = {} if self.selection.kind is ReferenceKind.BOOTSTRAP else configs
        with (
            self.selection.cluster(theirs, progress=self.progress) as reference,
            SimulatorProcess(self.simulator.arguments, brokers=BROKERS, configs=COMMON_CONFIGS | configs) as simulator,
            simulator.explain(ReferenceClusterError),
        ):
            yield kafka_cluster(reference), simulated_cluster(simulator)

    async def _play_area(
        self,
        area: Area,
        sequences: Several[Sequence],
        kafka: RunningCluster,
        sim: RunningCluster,
        on_finding: Callable[[Finding], None],
        totals: Totals,
    ) -> list[Finding]:
        theirs = fuzzed_side("kafka", kafka)
        ours = fuzzed_side("simulator", sim, theirs.brokers.first)
        fuzzer = Fuzzer(theirs, ours, self.known, prefix=f"f{secrets.token_hex(3)}.")
        await fuzzer.warm_up(with_share_groups=area.name.startswith("share"))
        if area.faults:
            return await self._play_waves(fuzzer, sequences, on_finding)
        places = asyncio.Semaphore(self.at_once)

        async def examine(sequence: Sequence) -> Finding:
            async with places:
                finding = await fuzzer.examine(sequence, shrinks=self.shrinks)
            on_finding(finding)
            return finding

        findings_of_sequences = await asyncio.gather(*(examine(one) for one in sequences))
        totals.plays += fuzzer.played
        return findings_of_sequences

    async def _play_waves(
        self, fuzzer: Fuzzer, sequences: Several[Sequence], on_finding: Callable[[Finding], None]
    ) -> list[Finding]:
        """Play sequences with the same faults at once."""
        found = []
        for _, wave in groupby(sequences, key=lambda one: one.seed // WAVE):
            findings = await fuzzer.examine_wave(list(wave), shrinks=self.shrinks)
            for finding in findings:
                on_finding(finding)
            found += findings
        return found


def _count(totals: Totals, finding: Finding) -> None:
    totals.sequences += 1
    totals.by_chance += finding.by_chance
    if finding.trouble is not None:
        totals.troubles.append(finding)
    elif finding.differences:
        totals.different.append(finding)
