import pytest

from broker_sim.metadata.acl import NO_ACLS, Acl, AclFilter, AclOperation, Acls, PatternType, Permission, ResourceType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def acl(name, pattern_type=LITERAL, resource_type=ResourceType.TOPIC, principal="User:a"):
    return Acl(resource_type, name, pattern_type, principal, "*", AclOperation.READ, Permission.ALLOW)


ALL = [acl("ab"), acl("ab", PREFIXED), acl("a", PREFIXED), acl("*"), acl("b"), acl("*", PREFIXED)]


@pytest.mark.parametrize(
    ("pattern_type", "name", "acls"),
    [
        (PatternType.ANY, None, ALL),
        (PatternType.ANY, "ab", ALL[:2]),
        (LITERAL, "ab", [ALL[0]]),
        (LITERAL, "*", [ALL[3]]),
        (LITERAL, None, [ALL[0], ALL[3], ALL[4]]),
        (PREFIXED, "ab", [ALL[1]]),
        (PatternType.MATCH, "ab", ALL[:4]),
        (PatternType.MATCH, "abc", ALL[1:4]),
        (PatternType.MATCH, "*", [ALL[3], ALL[5]]),
        (PatternType.MATCH, None, ALL),
    ],
)
def test_filter_selects_by_pattern_or_matching_resource(pattern_type, name, acls):
    acl_filter = AclFilter(ResourceType.TOPIC, name, pattern_type)
    assert Acls(ALL).matching(acl_filter) == sorted(acls)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resource_type", ResourceType.GROUP),
        ("principal", "User:b"),
        ("host", "h"),
        ("operation", AclOperation.WRITE),
        ("permission", Permission.DENY),
    ],
)
def test_filter_selects_by_each_field(field, value):
    other = acl("ab")._replace(**{field: value})
    rules = Acls([acl("ab"), other])
    assert rules.matching(AclFilter(**{field: value})) == [other]
    assert rules.matching(AclFilter(**{field: getattr(acl("ab"), field)})) == [acl("ab")]
    assert len(rules.matching(AclFilter())) == 2


@pytest.mark.parametrize(
    ("name", "acls"),
    [
        ("ab", [ALL[0], ALL[1], ALL[2], ALL[3]]),
        ("abc", [ALL[1], ALL[2], ALL[3]]),
        ("a", [ALL[2], ALL[3]]),
        ("c", [ALL[3]]),
        ("", [ALL[3]]),
        ("*", [ALL[3], ALL[5]]),
    ],
)
def test_acl_order_is_literal_prefixed_wildcard(name, acls):
    rules = Acls([*reversed(ALL), acl("ab", resource_type=ResourceType.GROUP)])
    groups = rules.for_resource(ResourceType.TOPIC, name)
    assert groups == [{"User:a": (each,)} for each in acls]
    assert NO_ACLS.for_resource(ResourceType.TOPIC, name) == []


def test_acls_are_compared_by_value():
    rules = Acls(ALL)
    assert rules == Acls(reversed(ALL))
    assert rules != Acls(ALL[1:])
    assert rules.with_changes((), ALL) == NO_ACLS
    assert rules.with_changes(ALL, ()) == rules
    assert len(rules.with_changes([ALL[0], ALL[0]], [acl("unknown")])) == len(ALL)
    assert ALL[0] in rules
    assert acl("ab", principal="User:b") not in rules


def test_unknown_code_becomes_unknown():
    assert ResourceType(77) is ResourceType.UNKNOWN
    assert AclOperation(-1) is AclOperation.UNKNOWN
    assert Permission(9) is Permission.UNKNOWN
    assert PatternType(9) is PatternType.UNKNOWN
