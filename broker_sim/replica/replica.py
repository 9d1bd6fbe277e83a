"""The state of one follower at its leader; mirrors `kafka.cluster.Replica`."""

from __future__ import annotations

UNKNOWN_OFFSET = -1


class IdleFetch:
    """A partition of a follower's fetch session that has nothing new for the follower."""

    __slots__ = ()

    @property
    def time_ms(self) -> int:
        """The time of the session's last fetch."""
        raise NotImplementedError

    def wake(self) -> None:
        """Make the session's next fetch read the partition again."""
        raise NotImplementedError


class Replica:
    """A follower's position, as its fetches have shown it to the leader.

    A follower is *caught up* if it has all of the leader's log, or had all of it at some time within
    the last `replica.lag.time.max.ms`. `last_caught_up_time_ms` is the latest such time.

    `idle` is set while the follower's fetch session has nothing new for this partition. Each fetch of the
    session then counts as a fetch of the partition, at the session's `time_ms`.
    """

    __slots__ = (
        "_last_caught_up_time_ms",
        "_last_fetch_time_ms",
        "broker_epoch",
        "broker_id",
        "idle",
        "last_fetch_leader_log_end_offset",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch: int | None = None
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_log_end_offset = 0
        self._last_fetch_time_ms = 0
        self._last_caught_up_time_ms = 0
        self.idle: IdleFetch | None = None

    @property
    def last_caught_up_time_ms(self) -> int:
        """The latest time in ms at which the follower had all of the leader's log."""
        if self.idle is None:
            return self._last_caught_up_time_ms
        return max(self._last_caught_up_time_ms, self.idle.time_ms)

    @property
    def last_fetch_time_ms(self) -> int:
        """The time of the follower's last fetch, in ms."""
        if self.idle is None:
            return self._last_fetch_time_ms
        return max(self._last_fetch_time_ms, self.idle.time_ms)

    def update_fetch_state(
        self, *, fetch_offset: int, log_start_offset: int, fetch_time_ms: int, leader_end_offset: int, broker_epoch: int
    ) -> None:
        """Update the position after a fetch; `leader_end_offset` is the leader's log end offset at that time.

        A follower that fetches from where the leader's log ended at its previous fetch had caught
        up at the time of that previous fetch.
        """
        if fetch_offset >= leader_end_offset:
            self._last_caught_up_time_ms = max(self._last_caught_up_time_ms, fetch_time_ms)
        elif fetch_offset >= self.last_fetch_leader_log_end_offset:
            self._last_caught_up_time_ms = max(self._last_caught_up_time_ms, self._last_fetch_time_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_log_end_offset = max(leader_end_offset, self.last_fetch_leader_log_end_offset)
        self._last_fetch_time_ms = fetch_time_ms
        self.broker_epoch = broker_epoch

    def end_idle(self) -> None:
        """Clear `idle`, keeping its times: the partition is read again from now on."""
        self._last_caught_up_time_ms = self.last_caught_up_time_ms
        self._last_fetch_time_ms = self.last_fetch_time_ms
        self.idle = None

    def reset(self, *, now_ms: int, leader_end_offset: int, is_new_leader: bool, is_in_sync: bool) -> None:
        """Start a leader epoch: a member of the ISR counts as caught up now, any other as never caught up."""
        self._last_caught_up_time_ms = now_ms if is_in_sync else 0
        if is_new_leader:
            self.log_start_offset = UNKNOWN_OFFSET
            self.log_end_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_log_end_offset = UNKNOWN_OFFSET
            self._last_fetch_time_ms = 0
            self.broker_epoch = None
        else:
            self.last_fetch_leader_log_end_offset = leader_end_offset
            self._last_fetch_time_ms = now_ms if is_in_sync else 0

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether the follower has everything, or had everything within `max_lag_ms`."""
        return leader_end_offset == self.log_end_offset or now_ms - self.last_caught_up_time_ms <= max_lag_ms
