"""What the header of a batch in a `.log` file says, and what it can never say."""

from __future__ import annotations

from struct import Struct
from typing import Final

from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, MAGIC_V2

HEADER_FIELDS: Final = Struct(">qiibIhi8xqq")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, max timestamp, producer."""


def is_out_of_place(magic: int, size_bytes: int, base_offset: int, last_offset_delta: int, end_offset: int) -> bool:
    """Whether no batch behind `end_offset` can have these numbers."""
    return magic != MAGIC_V2 or size_bytes < BATCH_OVERHEAD_BYTES or base_offset < end_offset or last_offset_delta < 0
