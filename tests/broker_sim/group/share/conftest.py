"""Share groups; their targets may change as often as their members do."""

import pytest

from tests.broker_sim.group.share.members import Shares


@pytest.fixture
def shares(make_bench):
    return Shares(make_bench(group_share_assignment_interval_ms=0))
