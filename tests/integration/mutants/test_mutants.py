"""Defects that are put into the simulator on purpose: the comparison has to find each of them.

Each mutant is a `broker-sim run` of its own, played beside Kafka in the scenarios that are about its
defect. It has to fail in the steps and fields that show it; the simulator without a defect has to pass
all of these scenarios.
"""

from __future__ import annotations

import runpy
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from broker_sim_integration.cluster_under_test.running_cluster import kafka_cluster
from broker_sim_integration.comparison.both_sides import compare_sides
from broker_sim_integration.comparison.differences import read_known_differences
from broker_sim_integration.comparison.reader_waits import ReaderControl
from broker_sim_integration.comparison.recorded import RecordedSide
from broker_sim_integration.comparison.runs import ClusterRunner, KafkaSide, SimulatorSide
from broker_sim_integration.comparison.verdict import Verdict
from broker_sim_integration.reference.progress import to_stderr
from broker_sim_integration.reference.selection import select_reference
from broker_sim_integration.scenarios.catalogue import select
from broker_sim_integration.simulator.command import SimulatorCommand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.comparison.runs import Configs, Run, Runner
    from broker_sim_integration.comparison.verdict import ScenarioResult
    from broker_sim_integration.reference.clusters.cluster import ReferenceCluster
    from broker_sim_integration.scenarios.scenario import Scenario

MUTANT = Path(__file__).with_name("mutant.py")
TIMES = frozenset({"late", "lateness"})
"""A busy machine may make other steps of a mutant late."""

pytestmark = [
    pytest.mark.soak(part="mutants"),
    pytest.mark.threads,
]


class Sign(NamedTuple):
    """Where a defect has to show."""

    scenario: str
    steps: tuple[str, ...]
    field: str
    entails: frozenset[str] = frozenset()
    """Further fields that differ because of it."""
    one_is_enough: bool = False
    """Whether one of the steps suffices: on a busy machine some of them may not show a small defect."""


WAITS_MS = (20, 100, 500, 1500)
APIS = ("acks=all", "deletion")
WAITS = "acks_all_and_deletions_wait_for_a_frozen_follower_until_their_timeout"
OFFSETS = "groups.0.topics.0.partitions"
OFFSET_FIELDS = ("committed_leader_epoch", "committed_offset", "error_code", "metadata", "partition_index")
ALL_WAITS = tuple(f"{api}, timeout {wait_ms}" for api in APIS for wait_ms in WAITS_MS)

SIGNS: dict[str, list[Sign]] = {
    "all_waits_20_ms_longer": [Sign(WAITS, ALL_WAITS, "lateness", one_is_enough=True)],
    "all_waits_2_ms_shorter": [Sign(WAITS, ALL_WAITS, "early", one_is_enough=True)],
    "fetches_of_several_partitions_woken_50_ms_later": [
        Sign("a_record_in_any_of_its_partitions_wakes_a_fetch", ("woken",), "lateness"),
        Sign("the_last_of_several_partitions_fills_min_bytes", ("woken",), "lateness"),
    ],
    "third_wheel_demotes_one_bucket_late": [Sign("fifty_fetches_time_out_together", ("together",), "lateness")],
    "purge_never_runs": [
        Sign(
            "completed_fetches_are_purged_where_nothing_happens",
            ("at first",),
            "any_purged",
            frozenset({"more_than_the_interval"}),
        )
    ],
    "high_watermark_one_follower_too_early": [
        Sign(
            "consumers_see_only_what_all_in_sync_replicas_have",
            ("at the high watermark",),
            "high_watermark",
            frozenset({"early", "records", "bytes", "values", "base_offset", "last_stable_offset"}),
        )
    ],
    "timed_out_produce_has_the_next_base_offset": [
        Sign("acks_all_times_out_while_a_frozen_follower_is_in_the_isr", ("acks=all",), "base_offset")
    ],
    "isr_shrinks_one_check_too_late": [
        Sign("a_shrinking_isr_completes_acks_all_and_fetches", ("acks=all", "fetch"), "late")
    ],
    "fetch_misses_the_last_wake_up": [
        Sign("a_record_shortly_before_the_timeout_is_not_missed", ("woken",), "lateness")
    ],
    "leader_epoch_errors_swapped": [
        Sign("a_leader_epoch_other_than_the_current_is_refused", ("current +1", "end, current +1"), "error_code")
    ],
    "marker_counts_before_the_isr_has_it": [
        Sign(
            "a_marker_waits_for_a_frozen_follower",
            ("frozen",),
            "last_stable_offset",
            frozenset({"found", "base_offset"}),
        )
    ],
    "last_stable_offset_one_marker_too_early": [
        Sign(
            "the_oldest_open_transaction_sets_the_last_stable_offset",
            ("1 ended, committed",),
            "last_stable_offset",
            frozenset({"found", "base_offset"}),
        )
    ],
    "last_aborted_transaction_is_not_named": [
        Sign("only_aborted_transactions_in_reach_are_named", ("from 0", "from 2"), "aborted")
    ],
    "init_does_not_bump_the_epoch": [
        Sign(
            "a_producer_bumps_its_own_epoch",
            ("bump", "plain"),
            "producer_epoch",
            frozenset({"error_code", "producer_id"}),
        )
    ],
    "timed_out_producer_is_not_fenced": [
        Sign(
            "a_transaction_whose_time_is_over_is_aborted",
            ("produce v11", "produce v13"),
            "error_code",
            frozenset(
                {
                    "base_offset",
                    "log_start_offset",
                    "producer_epoch",
                    "producer_id",
                    "results_by_topic_v3_and_below.0.results_by_partition.0.partition_error_code",
                    "transaction_states.0.producer_epoch",
                }
            ),
        )
    ],
    "offsets_of_an_aborted_transaction_count": [
        Sign(
            "offsets_of_an_aborted_transaction_never_count",
            ("aborted, stable False", "aborted, stable True"),
            f"{OFFSETS}.0.committed_offset",
            frozenset({f"{OFFSETS}.{partition}.{name}" for partition in (0, 1) for name in OFFSET_FIELDS}),
        )
    ],
    "sessions_end_late": [Sign("a_silent_member_is_removed_after_its_session", ("leader",), "lateness")],
    "joins_wait_late": [
        Sign("the_first_member_waits_three_seconds_for_others", ("alone",), "lateness"),
        Sign("who_does_not_rejoin_is_removed_after_the_rebalance_timeout", ("leader",), "lateness"),
    ],
    "consumer_sessions_end_late": [
        Sign("a_silent_member_is_fenced_after_the_session_of_its_group", ("fenced",), "lateness")
    ],
    "brokers_are_fenced_late": [Sign("a_fenced_broker_leaves_every_isr", ("left",), "late")],
    "transactions_time_out_late": [Sign("an_open_transaction_is_aborted_in_time", ("aborted",), "late")],
    "retention_is_late": [Sign("old_records_are_deleted_in_time", ("deleted",), "late")],
    "sync_does_not_wait_for_the_leader": [
        Sign("the_last_join_and_the_leaders_sync_answer_all", ("sync",), "assignment", frozenset({"early"}))
    ],
    "stopping_broker_asks_again_late": [
        Sign(
            "a_stopped_leader_hands_over_before_it_goes_and_is_let_in_again_after_its_session",
            ("parked at a follower",),
            "late",
        )
    ],
    "offsets_expire_late": [Sign("a_committed_offset_expires_in_time", ("over",), "late")],
    "idle_connections_are_closed_late": [Sign("an_idle_connection_is_closed_in_time", ("closed",), "late")],
    "transactional_ids_expire_late": [Sign("an_unused_transactional_id_is_forgotten_in_time", ("over",), "late")],
    "producers_expire_late": [Sign("a_silent_producer_is_forgotten_in_time", ("over",), "late")],
    "segments_are_rolled_late": [Sign("a_segment_is_rolled_in_time", ("over",), "late")],
    "young_records_are_compacted_late": [Sign("records_are_compacted_in_time", ("over",), "late")],
    "old_records_are_compacted_late": [Sign("a_log_is_compacted_whatever_the_ratio_in_time", ("over",), "late")],
    "cleaner_looks_late": [Sign("records_are_compacted_in_time", ("over",), "late")],
    "record_locks_end_late": [Sign("a_lock_that_times_out_makes_records_available", ("delivered again",), "lateness")],
    "share_fetches_wait_late": [
        Sign(
            "share_fetches_wait_as_long_as_they_ask",
            tuple(f"max wait {wait_ms}" for wait_ms in WAITS_MS),
            "lateness",
            one_is_enough=True,
        )
    ],
    "share_fetches_are_woken_late": [Sign("a_record_wakes_a_share_fetch", ("woken",), "lateness")],
    "timed_out_locks_wake_nobody": [
        Sign("a_lock_that_times_out_makes_records_available", ("delivered again",), "lateness")
    ],
    "share_sessions_end_late": [Sign("a_silent_share_member_is_fenced_after_its_session", ("fenced",), "lateness")],
    "share_sessions_are_refused_late": [
        Sign("a_share_fetch_without_room_for_its_session_waits", ("refused after 500", "refused after 1000"), "late")
    ],
    "streams_sessions_end_late": [Sign("a_silent_streams_member_is_fenced_after_its_session", ("fenced",), "lateness")],
    "streams_sessions_end_early": [Sign("a_silent_streams_member_is_fenced_after_its_session", ("fenced",), "early")],
    "streams_revocations_end_late": [Sign("a_streams_member_that_gives_nothing_up_is_fenced", ("fenced",), "lateness")],
    "new_streams_groups_wait_late": [Sign("a_new_streams_group_waits_for_members", ("assigned",), "lateness")],
    "streams_members_are_told_another_interval": [
        Sign("a_new_streams_group_waits_for_members", ("delayed",), "heartbeat_interval_ms")
    ],
}
"""Signs of each mutant, by its name in mutant.py."""
PLAYED = sorted({sign.scenario for signs in SIGNS.values() for sign in signs})


class LiveRunner:
    """Plays scenarios on one real cluster again and again, each time with topics of its own."""

    def __init__(self, runner: ClusterRunner, repeats: dict[str, int]) -> None:
        self._runner = runner
        self._repeats = repeats

    def run(self, scenario: Scenario, repeat: int) -> Run:
        """Run a scenario; the repeat within one comparison does not count."""
        del repeat
        self._repeats[scenario.name] = self._repeats.get(scenario.name, 0) + 1
        return self._runner.run(scenario, self._repeats[scenario.name])


class LiveSide:
    """A real Kafka for all mutants: the session's, and one more for the configurations that a scenario asks for.

    That one stays until a scenario asks for others: each idle broker takes 4 % of a processor.
    """

    name = "kafka"

    def __init__(self, cluster: ReferenceCluster, stack: ExitStack) -> None:
        selection = select_reference(cluster.kind, make_image=False)
        self._kafka = KafkaSide(selection, to_stderr)
        self._repeats: dict[str, int] = {}
        self._usual = stack.enter_context(ClusterRunner(kafka_cluster(cluster)))
        self._others = stack.enter_context(ExitStack())
        self._other: tuple[Configs, Runner] = ((), self._usual)

    @contextmanager
    def open(self, configs: Configs) -> Iterator[Runner]:
        """Start nothing that has been started."""
        if configs and configs != self._other[0]:
            self._others.close()
            self._other = configs, self._others.enter_context(self._kafka.open(configs))
        yield LiveRunner(self._other[1] if configs else self._usual, self._repeats)


@pytest.fixture(scope="module", params=["recorded", pytest.param("live", marks=pytest.mark.real_kafka)])
def kafka(request):
    if request.param == "recorded":
        yield RecordedSide()
        return
    with ExitStack() as stack:
        yield LiveSide(request.getfixturevalue("running_real_kafka"), stack)


def play(kafka, mutant: str, scenarios: list[str]) -> dict[str, ScenarioResult]:
    """Compare a mutant with Kafka; return the results by scenario."""
    command = SimulatorCommand((sys.executable, "-P", str(MUTANT), mutant, "run"), "a mutant")
    with ReaderControl() as control:
        results = compare_sides(
            kafka,
            SimulatorSide(command),
            select(scenarios),
            repeats=1,
            known=read_known_differences(),
            on_result=lambda _: None,
            control=control,
        )
    return {result.scenario.name: result for result in results}


@pytest.mark.parametrize("mutant", SIGNS)
def test_a_mutant_is_caught(kafka, mutant):
    signs = SIGNS[mutant]
    results = play(kafka, mutant, [sign.scenario for sign in signs])
    for sign in signs:
        result = results[sign.scenario]
        assert result.verdict in {Verdict.DIFFERED, Verdict.LATE}, result.not_played or mutant
        assert not result.has_trouble, result.trouble
        found = {(one.step, one.field): one for one in result.failures}
        shown = [(step, sign.field) in found for step in sign.steps]
        assert any(shown) if sign.one_is_enough else all(shown), sorted(found)
        others = {field for _, field in found} - {sign.field} - sign.entails - TIMES
        assert not others, sorted(found)


def test_the_simulator_without_a_defect_passes(kafka):
    results = play(kafka, "nothing", PLAYED)
    # A Kafka that was late itself does not show that the simulator is right, nor that it is wrong.
    passed = {Verdict.AGREED, Verdict.REFERENCE_LATE}
    failed = {
        name: result.not_played or result.trouble or result.failures
        for name, result in results.items()
        if result.verdict not in passed
    }
    assert not failed
    assert Verdict.AGREED in {result.verdict for result in results.values()}


def test_every_mutant_is_played():
    assert list(runpy.run_path(str(MUTANT))["MUTANTS"]) == ["nothing", *SIGNS]
