"""How segments are opened follows from the shutdown before, the recovery point and what is known of transactions."""

import pytest

from broker_sim.log.storage.batch_scan import MAX_RELATIVE_OFFSET
from broker_sim.log.storage.log_loader import OpenMode, SegmentPlan, plan_segments

ENDS, WHOLE, RECOVER = OpenMode.ENDS, OpenMode.WHOLE, OpenMode.RECOVER
BASES = [0, 10, 20]


@pytest.mark.parametrize(
    ("was_closed", "recovery_point", "needs_no_batches", "expected"),
    [
        (True, 0, True, [ENDS, ENDS, ENDS]),
        (True, 0, False, [WHOLE, WHOLE, WHOLE]),
        (False, 0, True, [RECOVER, RECOVER, RECOVER]),
        (False, 9, True, [RECOVER, RECOVER, RECOVER]),
        (False, 10, True, [ENDS, RECOVER, RECOVER]),
        (False, 11, True, [ENDS, RECOVER, RECOVER]),
        (False, 20, False, [WHOLE, WHOLE, RECOVER]),
        (False, 99, True, [ENDS, ENDS, RECOVER]),
    ],
)
def test_segments_above_the_recovery_point_are_recovered_and_others_stay_unread(
    was_closed, recovery_point, needs_no_batches, expected
):
    plans = plan_segments(
        BASES, was_closed=was_closed, recovery_point=recovery_point, needs_no_batches=needs_no_batches
    )
    assert [plan.mode for plan in plans] == expected


def test_segment_ends_where_the_next_one_begins():
    plans = plan_segments(BASES, was_closed=True, recovery_point=0, needs_no_batches=False)
    assert plans == [
        SegmentPlan(0, 10, WHOLE),
        SegmentPlan(10, 20, WHOLE),
        SegmentPlan(20, 20 + MAX_RELATIVE_OFFSET, WHOLE),
    ]


def test_log_without_segments_has_no_plans():
    assert not plan_segments([], was_closed=False, recovery_point=0, needs_no_batches=True)
