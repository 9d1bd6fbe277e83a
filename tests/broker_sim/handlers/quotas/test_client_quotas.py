"""Claims about AlterClientQuotas and DescribeClientQuotas, with the answers of Kafka 4.3.1."""

import math

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.handlers.quotas.alter_client_quotas import handle_alter_client_quotas
from broker_sim.handlers.quotas.describe_client_quotas import handle_describe_client_quotas
from broker_sim.protocol import messages

ALTER, DESCRIBE = messages.AlterClientQuotasRequest, messages.DescribeClientQuotasRequest
NONE, UNSUPPORTED, INVALID = 0, 35, 42
PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
A = {"user": "a"}
EMPTY = "Invalid empty client quota entity"
TWICE = "Ignoring duplicate entity ClientQuotaEntity(entries={user=a})"
TWICE_IN_BOTH = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=a})"
COMBINED = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"

MIXED_FILTER = (
    "Invalid entity filter component combination. IP filter component should not be used"
    " with user or clientId filter component."
)


def entry(names, *operations):
    """Return what sets each pair of a quota and its value, and removes it where the value is None."""
    return ALTER.EntryData(
        [ALTER.EntityData(kind, name) for kind, name in names.items()],
        [ALTER.OpData(name, value or 0.0, value is None) for name, value in operations],
    )


def alter(broker, *entries, validate_only=False):
    """Return names, code and text of each entity in the order of the answer."""
    request = ALTER(list(entries), validate_only)
    response = broker.ask(handle_alter_client_quotas, request, 1)
    return [(names_of(each), each.error_code, each.error_message) for each in response.entries]


def names_of(each):
    return [(part.entity_type, part.entity_name) for part in each.entity]


def ask(broker, *components, strict=False):
    request = DESCRIBE([DESCRIBE.ComponentData(*each, *[None] * (3 - len(each))) for each in components], strict)
    return broker.ask(handle_describe_client_quotas, request, 1)


def describe(broker, *components, strict=False):
    response = ask(broker, *components, strict=strict)
    assert (response.error_code, response.error_message) == (NONE, "")
    return [(names_of(each), [(value.key, value.value) for value in each.values]) for each in response.entries]


@pytest.mark.parametrize(
    ("names", "operations", "message"),
    [
        ({}, [], EMPTY),
        ({}, [(PRODUCE, 1)], EMPTY),
        ({"topic": "t"}, [(PRODUCE, 1)], "Unhandled client quota entity type: topic"),
        ({"user": ""}, [(PRODUCE, 1)], "Empty user not supported"),
        ({"client-id": ""}, [(PRODUCE, 1)], "Empty client-id not supported"),
        ({"ip": ""}, [(CONNECTIONS, 1)], "Empty ip not supported"),
        ({"user": "a", "ip": "1.2.3.4"}, [(CONNECTIONS, 1)], COMBINED),
        (
            {"ip": "no-such-host.invalid"},
            [(CONNECTIONS, 1)],
            "no-such-host.invalid is not a valid IP or resolvable host.",
        ),
        ({"ip": "1.2.3.4"}, [(PRODUCE, 1)], f"Invalid configuration key {PRODUCE}"),
        ({"ip": None}, [(CONNECTIONS, 1.5)], f"{CONNECTIONS} cannot be a fractional value."),
        ({"ip": None}, [(CONNECTIONS, 2**31)], f"Proposed value for {CONNECTIONS} is too large for an INT."),
        ({"ip": None}, [(CONNECTIONS, 0.0)], f"Quota {CONNECTIONS} must be greater than 0"),
        (A, [(CONNECTIONS, 1)], f"Invalid configuration key {CONNECTIONS}"),
        (A, [("nope", 1)], "Invalid configuration key nope"),
        (A, [(PRODUCE, -1)], f"Quota {PRODUCE} must be greater than 0"),
        (A, [(REQUEST, -0.5)], f"Quota {REQUEST} must be greater than 0"),
        (A, [(PRODUCE, 1.5)], f"{PRODUCE} cannot be a fractional value."),
        (A, [(PRODUCE, 1e19)], f"Proposed value for {PRODUCE} is too large for a LONG."),
        (A, [(PRODUCE, math.nextafter(2**63, math.inf))], f"Proposed value for {PRODUCE} is too large for a LONG."),
        (A, [(PRODUCE, math.inf)], f"Quota {PRODUCE} must be a finite number"),
        (A, [(REQUEST, math.inf)], f"Quota {REQUEST} must be a finite number"),
        (A, [(REQUEST, math.nan)], f"Quota {REQUEST} must be a finite number"),
        (A, [(PRODUCE, 1), (PRODUCE, 2)], TWICE),
        ({"client-id": None, "user": "a"}, [(PRODUCE, 1), (PRODUCE, 1)], TWICE_IN_BOTH),
        # The first in the order of Kafka's table of operations is told.
        (A, [(PRODUCE, -1), ("nope", 1), (REQUEST, -1), (MUTATION, -1)], f"Quota {PRODUCE} must be greater than 0"),
        (A, [(PRODUCE, 7), ("nope", 1)], "Invalid configuration key nope"),
    ],
)
def test_refused_quota_leaves_nothing(broker, names, operations, message):
    assert alter(broker, entry(names, *operations)) == [(list(names.items()), INVALID, message)]
    assert describe(broker) == []


@pytest.mark.parametrize(
    ("names", "quota", "value"),
    [
        ({"ip": "localhost"}, CONNECTIONS, 1),
        ({"ip": "1.2.3"}, CONNECTIONS, 1),
        ({"ip": "::1"}, CONNECTIONS, 1),
        ({"ip": None}, CONNECTIONS, 2**31 - 1),
        (A, PRODUCE, 1.0000001),
        (A, PRODUCE, 2.0**63),
        (A, MUTATION, 0.1),
        ({"client-id": None, "user": None}, FETCH, 7),
    ],
)
def test_quota_is_kept_and_removed(broker, names, quota, value):
    named = list(names.items())
    assert alter(broker, entry(names, (quota, value))) == [(named, NONE, None)]
    assert describe(broker) == [(named, [(quota, value)])]
    assert alter(broker, entry(names, (quota, None))) == [(named, NONE, None)]
    assert describe(broker) == []


def test_removing_a_missing_quota_succeeds(broker):
    assert alter(broker, entry(A, ("nope", None))) == [([("user", "a")], NONE, None)]


def test_only_validated_changes_are_not_made(broker):
    assert alter(broker, entry(A, (PRODUCE, 1)), validate_only=True) == [([("user", "a")], NONE, None)]
    assert describe(broker) == []


def test_duplicate_entity_keeps_the_first_alteration(broker):
    assert alter(broker, entry(A, (PRODUCE, 1)), entry(A, (FETCH, 1))) == [([("user", "a")], INVALID, TWICE)]
    assert describe(broker) == [([("user", "a")], [(PRODUCE, 1)])]


def test_other_quotas_and_entities_stay(broker):
    alter(broker, entry(A, (PRODUCE, 1), (REQUEST, 0.5)), entry({"client-id": "x"}, (FETCH, 9)))
    alter(broker, entry(A, (MUTATION, 0.1), (PRODUCE, None)), entry({"topic": "t"}, (PRODUCE, 1)))
    assert sorted(describe(broker)) == [
        ([("client-id", "x")], [(FETCH, 9)]),
        ([("user", "a")], [(MUTATION, 0.1), (REQUEST, 0.5)]),
    ]


ALL_OF_A = [[("user", "a")], [("client-id", "x"), ("user", "a")], [("client-id", None), ("user", "a")]]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], True, []),
        ([("user", EXACT, "a")], False, ALL_OF_A),
        ([("user", EXACT, "a")], True, ALL_OF_A[:1]),
        ([("user", DEFAULT)], True, [[("user", None)]]),
        ([("user", SPECIFIED)], True, [[("user", "a")], [("user", None)]]),
        ([("client-id", DEFAULT), ("user", SPECIFIED)], False, ALL_OF_A[2:]),
        ([("client-id", EXACT, "x"), ("user", EXACT, "a")], False, ALL_OF_A[1:2]),
        ([("ip", SPECIFIED)], False, [[("ip", "10.0.0.1")]]),
        ([("user", EXACT, "")], False, []),
    ],
)
def test_filter_finds_entities(broker, components, strict, found):
    for names in [*map(dict, ALL_OF_A), {"user": None}]:
        alter(broker, entry(names, (PRODUCE, 1)))
    alter(broker, entry({"ip": "10.0.0.1"}, (CONNECTIONS, 1)))
    described = [names for names, _ in describe(broker, *components, strict=strict)]
    assert sorted(map(str, described)) == sorted(map(str, found))


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("", EXACT, "a")], INVALID, "Invalid empty entity type."),
        ([("topic", EXACT, "a")], UNSUPPORTED, "Unsupported entity type topic"),
        (
            [("user", EXACT, "a"), ("user", DEFAULT)],
            INVALID,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([("user", EXACT)], INVALID, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", DEFAULT, "a")], INVALID, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        (
            [("user", SPECIFIED, "a")],
            INVALID,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([("user", 3)], INVALID, "Unknown match type 3"),
        ([("ip", SPECIFIED), ("user", SPECIFIED)], INVALID, MIXED_FILTER),
    ],
)
def test_refused_filter(broker, components, code, message):
    response = ask(broker, *components)
    assert (response.error_code, response.error_message, response.entries) == (code, message, None)


IN_ORDER = [
    {"ip": "localhost"},
    {"client-id": "x"},
    {"ip": None},
    {"client-id": "<default>"},
    {"user": "good"},
    {"ip": "1.2.3"},
    {"ip": "::1"},
    {"client-id": "x", "user": "a"},
    {"user": "<default>"},
    {"user": None},
    {"client-id": None},
    {"user": "b"},
    {"user": "a"},
]


def test_entities_and_quotas_are_in_the_order_of_kafkas_hash_tables(broker):
    for names in sorted(IN_ORDER, key=len):
        alter(broker, entry(names, (CONNECTIONS if "ip" in names else PRODUCE, 1)))
        if "ip" not in names:
            alter(broker, entry(names, (REQUEST, 1), (MUTATION, 1)))
    found = describe(broker)
    assert [dict(names) for names, _ in found] == IN_ORDER
    assert [name for name, _ in found[1][1]] == [MUTATION, PRODUCE, REQUEST]


def test_quotas_set_together_come_in_the_order_of_the_table_of_changes(broker):
    alter(broker, entry(A, (PRODUCE, 1), (REQUEST, 0.5)))
    assert [name for name, _ in describe(broker)[0][1]] == [REQUEST, PRODUCE]
    alter(broker, entry(A, (PRODUCE, 2), (MUTATION, 0.1)))
    assert [name for name, _ in describe(broker)[0][1]] == [MUTATION, REQUEST, PRODUCE]


@pytest.mark.parametrize(
    ("quota", "code", "message"),
    [(PRODUCE, INVALID, f"Proposed value for {PRODUCE} is too large for a LONG."), (REQUEST, NONE, None)],
)
def test_quota_may_be_infinite_before_4_4(quota, code, message):
    cluster = VirtualCluster(1, as_version="4.3")
    request = messages.AlterClientQuotasRequest
    entity = request.EntryData([request.EntityData("user", "a")], [request.OpData(quota, math.inf)])
    pending = cluster.client().send(1, request([entity]), 1)
    cluster.run_until(lambda: pending.done)
    (answer,) = pending.response.entries
    assert (answer.error_code, answer.error_message) == (code, message)
