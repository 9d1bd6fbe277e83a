"""Tests of which quota applies to a client."""

import pytest

from broker_sim.quota.quota_limits import QuotaLimits

U, ANY_U = ("user", "u"), ("user", None)
C, ANY_C = ("client-id", "c"), ("client-id", None)
IN_ORDER = [(C, U), (ANY_C, U), (U,), (C, ANY_U), (ANY_C, ANY_U), (ANY_U,), (C,), (ANY_C,)]
"""All entities, with their precedence as bound."""


def limits_of(*entities):
    return QuotaLimits([(entity, IN_ORDER.index(entity) + 1) for entity in entities])


def limit_for(limits, user, client_id):
    return limits.limit(limits.tags(user, client_id))


@pytest.mark.parametrize("first", range(8))
def test_most_specific_quota_applies(first):
    limits = limits_of(*IN_ORDER[first:])
    assert limit_for(limits, "u", "c") == first + 1


@pytest.mark.parametrize(
    ("user", "client_id", "bound"),
    [("u", "c", 1), ("u", "x", 2), ("x", "c", 4), ("x", "y", 5), ("u", "", 3), ("x", "", 6)],
)
def test_each_client_has_its_own(user, client_id, bound):
    limits = limits_of(*IN_ORDER)
    if not client_id:
        limits = limits_of((U,), (ANY_U,), (C,))
    assert limit_for(limits, user, client_id) == bound


@pytest.mark.parametrize(
    ("entities", "tags"),
    [
        ([], ("", "c")),
        ([(C,)], ("", "c")),
        ([(ANY_C,)], ("", "c")),
        ([(U,)], ("u", "")),
        ([(ANY_U,)], ("u", "")),
        ([(C, U)], ("u", "c")),
        ([(C, U), (U,)], ("u", "c")),
        ([(C, ANY_U), (U,)], ("u", "")),
        ([(ANY_C, ANY_U), (ANY_U,)], ("u", "c")),
        ([(("client-id", "x"), U), (C,)], ("", "c")),
        ([(("client-id", "x"), U), (("user", "x"),)], ("", "c")),
    ],
)
def test_clients_of_one_quota_share_a_rate(entities, tags):
    limits = QuotaLimits([(entity, 1) for entity in entities])
    assert limits.tags("u", "c") == tags
    assert bool(limits) == bool(entities)


@pytest.mark.parametrize("entity", [(C,), (("client-id", "x"), U)])
def test_other_clients_are_unlimited(entity):
    limits = QuotaLimits([(entity, 1)])
    assert limit_for(limits, "other", "other") is None
    assert limit_for(limits, "", "") is None


def test_default_client_id_quota_needs_a_client_id():
    assert limit_for(limits_of((ANY_C,)), "u", "") is None
