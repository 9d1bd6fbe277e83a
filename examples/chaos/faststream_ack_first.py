"""With FastStream, which commits what it has read unless told otherwise: a crash loses what is under way."""

import pytest
from faststream import AckPolicy
from kitchen import each_order_is_cooked

FAULTS = {"crash", "freeze", "kill"}


@pytest.mark.chaos(duration_s=12, faults=FAULTS)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_cooked(chaos, auto_commit_interval_ms=1_000)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes: the commit waits for the handler."""
    await each_order_is_cooked(chaos, ack_policy=AckPolicy.NACK_ON_ERROR)
