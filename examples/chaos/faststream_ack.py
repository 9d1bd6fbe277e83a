"""With FastStream, told to acknowledge what a handler has seen: also if it raised an error, and the order is lost."""

import pytest
from faststream import AckPolicy
from kitchen import each_order_is_cooked

FAULTS = {"fail": 2, "crash": 1}


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await each_order_is_cooked(chaos, ack_policy=AckPolicy.ACK)


@pytest.mark.chaos(duration_s=12, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes: the consumer goes back to the order."""
    await each_order_is_cooked(chaos, ack_policy=AckPolicy.NACK_ON_ERROR)
