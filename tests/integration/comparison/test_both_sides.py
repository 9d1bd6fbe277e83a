"""What a comparison does around its scenarios."""

import gc

from integration.comparison.both_sides import settled_heap


def test_what_is_there_before_a_comparison_is_not_walked_while_it_runs():
    before = [[] for _ in range(10_000)]
    with settled_heap():
        assert gc.get_freeze_count() > len(before)
        assert len(gc.get_objects()) < len(before)
    assert gc.get_freeze_count() == 0
