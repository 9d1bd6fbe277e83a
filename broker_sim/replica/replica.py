"""The state of one follower at its leader; mirrors `kafka.cluster.Replica`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.replica.fetch_params import FetchPartition, FetchPartitionData
    from broker_sim.replica.isr_state import IsrState

__all__ = ["UNKNOWN_OFFSET", "Replica"]

UNKNOWN_OFFSET = -1


class Replica:
    """A follower's position, as the leader knows it from the follower's fetches.

    A follower is *caught up* if it has all of the leader's log, or had all of it at some time within
    the last `replica.lag.time.max.ms`. `last_caught_up_time_ms` is the latest such time.

    `idle_fetch` is its last fetch if that was from the log's end and found nothing, `idle_data` what it
    was told, and `idle_isr` the ISR then, which had it or was about to change.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "idle_data",
        "idle_fetch",
        "idle_isr",
        "last_caught_up_time_ms",
        "last_fetch_leader_log_end_offset",
        "last_fetch_time_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch: int | None = None
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_log_end_offset = 0
        self.last_fetch_time_ms = 0
        self.last_caught_up_time_ms = 0
        self.idle_fetch: FetchPartition | None = None
        self.idle_data: FetchPartitionData | None = None
        self.idle_isr: IsrState | None = None

    def update_fetch_state(
        self,
        *,
        fetch_offset: int,
        log_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int,
    ) -> None:
        """Update the position after a fetch, at a time when the leader's log ended at that offset.

        A follower that fetches from where the leader's log ended at its previous fetch had caught
        up at the time of that previous fetch.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_time_ms = max(self.last_caught_up_time_ms, fetch_time_ms)
        elif fetch_offset >= self.last_fetch_leader_log_end_offset:
            self.last_caught_up_time_ms = max(self.last_caught_up_time_ms, self.last_fetch_time_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = max(
            leader_end_offset, self.last_fetch_leader_log_end_offset
        )
        self.last_fetch_time_ms = fetch_time_ms
        self.broker_epoch = broker_epoch

    def fetched_again(self, fetch_time_ms: int, broker_epoch: int) -> None:
        """Update the position after `idle_fetch` was sent once more, while the log has not moved."""
        self.last_caught_up_time_ms = fetch_time_ms
        self.last_fetch_time_ms = fetch_time_ms
        self.broker_epoch = broker_epoch

    def reset(
        self, *, now_ms: int, leader_end_offset: int, is_new_leader: bool, is_in_sync: bool
    ) -> None:
        """Start a leader epoch: a member of the ISR counts as caught up now, the others never."""
        self.last_caught_up_time_ms = now_ms if is_in_sync else 0
        self.idle_fetch = None
        if is_new_leader:
            self.log_start_offset = UNKNOWN_OFFSET
            self.log_end_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_log_end_offset = UNKNOWN_OFFSET
            self.last_fetch_time_ms = 0
            self.broker_epoch = None
        else:
            self.last_fetch_leader_log_end_offset = leader_end_offset
            self.last_fetch_time_ms = now_ms if is_in_sync else 0

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether the follower has everything, or had everything within `max_lag_ms`."""
        return (
            leader_end_offset == self.log_end_offset
            or now_ms - self.last_caught_up_time_ms <= max_lag_ms
        )
