"""A share fetch request and its answer; mirrors `ShareFetch` and `PartitionRotateStrategy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.replica import FetchParams
    from broker_sim.share.partition.acquisition import AcquireLimits
    from broker_sim.share.partition.fetched_records import AcquiredRange

    OnFetched = Callable[[Mapping["TopicIdPartition", "SharePartitionData"]], object]


class SharePartitionData:
    """The answer for one partition: an error, or the acquired ranges and their records."""

    __slots__ = ("acquired", "error_code", "records")

    def __init__(
        self,
        error_code: ErrorCode = ErrorCode.NONE,
        records: Sequence[bytes | memoryview] = (),
        acquired: Sequence[AcquiredRange] = (),
    ) -> None:
        self.error_code = error_code
        self.records = records
        self.acquired = acquired

    @property
    def has_records(self) -> bool:
        """Whether the answer has records."""
        return bool(self.records)

    @property
    def has_error(self) -> bool:
        """Whether the answer is an error."""
        return self.error_code is not ErrorCode.NONE


class ShareFetch:
    """A fetch for one member; `on_done` is called once, with the answers by partition."""

    __slots__ = ("_erroneous", "_on_done", "group_id", "is_completed", "limits", "params", "partitions")

    def __init__(
        self,
        group_id: str,
        params: FetchParams,
        limits: AcquireLimits,
        partitions: Sequence[TopicIdPartition],
        on_done: OnFetched,
    ) -> None:
        self.group_id = group_id
        self.params = params
        self.limits = limits
        self.partitions = partitions
        self.is_completed = False
        self._erroneous: dict[TopicIdPartition, ErrorCode] = {}
        self._on_done = on_done

    @property
    def is_empty(self) -> bool:
        """Whether the fetch cannot return any records, so that it need not wait."""
        return not self.partitions or self.limits.max_records == 0 or self.params.max_bytes == 0

    @property
    def has_error_in_all_partitions(self) -> bool:
        """Whether all partitions have an error."""
        return len(self._erroneous) == len(self.partitions)

    @property
    def first_error(self) -> ErrorCode:
        """The first partition error, NONE if there is none."""
        return next(iter(self._erroneous.values()), ErrorCode.NONE)

    def is_erroneous(self, partition: TopicIdPartition) -> bool:
        """Whether the partition has an error."""
        return partition in self._erroneous

    def add_erroneous(self, partitions: Iterable[TopicIdPartition], error: ApiError) -> None:
        """Set the error of these partitions for the answer."""
        for partition in partitions:
            self._erroneous[partition] = error.error_code

    def maybe_complete(self, data: Mapping[TopicIdPartition, SharePartitionData]) -> None:
        """Answer, unless the fetch is already completed."""
        if self.is_completed:
            return
        self.is_completed = True
        answers = dict(data)
        for partition, error_code in self._erroneous.items():
            answers[partition] = SharePartitionData(error_code)
        self._on_done(answers)


def rotate(partitions: Sequence[TopicIdPartition], session_epoch: int) -> list[TopicIdPartition]:
    """Return the partitions rotated by the session epoch, so that each comes first in turn."""
    if session_epoch < 1 or not partitions:
        return list(partitions)
    at = session_epoch % len(partitions)
    return [*partitions[at:], *partitions[:at]]
