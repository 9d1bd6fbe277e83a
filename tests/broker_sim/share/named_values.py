"""Values of share partitions by name, as tests compare them."""

from typing import NamedTuple

from broker_sim.share.partition.fetched_records import AcquiredRange
from broker_sim.share.share_state import StateBatch

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


class Offsets(NamedTuple):
    """The offsets of a share partition."""

    start: int
    end: int
    next_fetch: int


class Standing(NamedTuple):
    """The state of a record in flight."""

    state: str
    deliveries: int
    member: str


class Written(NamedTuple):
    """A write to the share coordinator."""

    start_offset: int
    batches: list[StateBatch]


def acquired(first_offset, last_offset, deliveries=1):
    """Return a range of records that a member has acquired."""
    return AcquiredRange(first_offset, last_offset, deliveries)


def state_batch(first_offset, last_offset, state, deliveries=1):
    """Return the written state of adjacent records."""
    return StateBatch(first_offset, last_offset, state, deliveries)


def standing(state, deliveries=1, member=""):
    """Return the state of a record in flight."""
    return Standing(state, deliveries, member)
