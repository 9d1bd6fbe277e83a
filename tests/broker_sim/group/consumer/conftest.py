"""Groups of the consumer protocol; their targets may change as often as their members do."""

import pytest


@pytest.fixture
def bench(make_bench):
    return make_bench(group_consumer_assignment_interval_ms=0)
