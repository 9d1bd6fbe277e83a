"""Address ranges of ACL hosts; the messages are those of a running Kafka 4.4.0."""

import pytest

from broker_sim.metadata.cidr import cidr_problem, is_in_range


@pytest.mark.parametrize("host", ["10.0.0.0/8", "10.0.0.0/0", "10.0.0.0/08", "::/0", "fe80::1/64", "fe80::%eth0/64"])
def test_range_is_accepted(host):
    assert cidr_problem(host) is None


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("10.0.0.1/33", "Value [33] not in range [0,32]"),
        ("10.0.0.300/8", "Value [300] not in range [0,255]"),
        ("10.0.0/8", "Could not parse [10.0.0/8]"),
        ("10.0.0.1/-1", "Could not parse [10.0.0.1/-1]"),
        ("/", "Could not parse [/]"),
        ("1.2.3.4/8/9", "Could not parse [1.2.3.4/8/9]"),
        ("fe80::/129", "Could not parse [fe80::/129] - prefix length must be between 0 and 128"),
        ("fe80::1/", "Could not parse [fe80::1/] - invalid prefix length"),
        ("fe80::zz/64", "Could not parse [fe80::zz]"),
        ("::ffff:10.0.0.0/100", "Could not parse [::ffff:10.0.0.0] - not an IPv6 address"),
    ],
)
def test_error_message_of_invalid_range_is_kafkas(host, problem):
    assert cidr_problem(host) == problem


@pytest.mark.parametrize(
    ("host", "client", "is_inside"),
    [
        ("10.1.0.0/16", "10.1.255.255", True),
        ("10.1.0.0/16", "10.2.0.0", False),
        ("10.1.2.3/16", "10.1.9.9", True),
        ("10.1.2.3/32", "10.1.2.3", True),
        ("10.1.2.3/32", "10.1.2.4", False),
        ("fe80::/64", "fe80::1", True),
        ("fe80::/64", "fe81::1", False),
        ("0.0.0.0/0", "::1", False),
        ("10.1.2.3", "10.1.2.3", False),
    ],
)
def test_client_address_is_matched_against_range(host, client, is_inside):
    assert is_in_range(host, client) is is_inside
