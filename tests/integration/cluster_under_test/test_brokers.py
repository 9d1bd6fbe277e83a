import pytest
from broker_sim_integration.cluster_under_test.brokers import Brokers

ADDRESSES = {1: ("a", 9), 2: ("b", 9), 3: ("c", 9)}


@pytest.mark.parametrize(("controller_broker", "expected"), [(None, [1, 2, 3]), (1, [1, 2, 3]), (3, [3, 1, 2])])
def test_first_is_the_broker_with_the_active_controller(controller_broker, expected):
    assert list(Brokers.of(ADDRESSES, controller_broker)) == expected


def test_roles_are_equal_whichever_broker_has_the_controller():
    one, other = Brokers.of(ADDRESSES, 1), Brokers.of(ADDRESSES, 2)
    assert [one.role(broker) for broker in one] == [other.role(broker) for broker in other]
    assert one.roles([3, 1, -1, 7]) == ["first", "none", "third", "unknown"]
