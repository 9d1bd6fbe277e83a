"""Share groups, without a minimum interval between assignments."""

import pytest

from tests.broker_sim.group.share.members import Shares


@pytest.fixture
def shares(make_bench):
    return Shares(make_bench(group_share_assignment_interval_ms=0))
