import pytest

from broker_sim.metadata.acl import NO_ACLS, Acl, AclFilter, AclOperation, Acls, PatternType, Permission, ResourceType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def acl(name, pattern_type=LITERAL, resource_type=ResourceType.TOPIC, principal="User:a"):
    return Acl(resource_type, name, pattern_type, principal, "*", AclOperation.READ, Permission.ALLOW)


ALL = [acl("ab"), acl("ab", PREFIXED), acl("a", PREFIXED), acl("*"), acl("b"), acl("*", PREFIXED)]


@pytest.mark.parametrize(
    ("pattern_type", "name", "found"),
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
def test_a_filter_means_rules_by_their_pattern_or_by_what_they_concern(pattern_type, name, found):
    wanted = AclFilter(ResourceType.TOPIC, name, pattern_type)
    assert Acls(ALL).matching(wanted) == sorted(found)


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
def test_a_filter_means_rules_by_each_of_their_fields(field, value):
    other = acl("ab")._replace(**{field: value})
    rules = Acls([acl("ab"), other])
    assert rules.matching(AclFilter(**{field: value})) == [other]
    assert rules.matching(AclFilter(**{field: getattr(acl("ab"), field)})) == [acl("ab")]
    assert len(rules.matching(AclFilter())) == 2


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ab", [ALL[0], ALL[1], ALL[2], ALL[3]]),
        ("abc", [ALL[1], ALL[2], ALL[3]]),
        ("a", [ALL[2], ALL[3]]),
        ("c", [ALL[3]]),
        ("", [ALL[3]]),
        ("*", [ALL[3], ALL[5]]),
    ],
)
def test_resource_has_rules_of_its_name_then_of_its_prefixes_then_of_the_wildcard(name, found):
    rules = Acls([*reversed(ALL), acl("ab", resource_type=ResourceType.GROUP)])
    groups = rules.for_resource(ResourceType.TOPIC, name)
    assert groups == [{"User:a": (each,)} for each in found]
    assert NO_ACLS.for_resource(ResourceType.TOPIC, name) == []


def test_rules_are_compared_by_what_is_in_them():
    rules = Acls(ALL)
    assert rules == Acls(reversed(ALL))
    assert rules != Acls(ALL[1:])
    assert rules.with_changes((), ALL) == NO_ACLS
    assert rules.with_changes(ALL, ()) == rules
    assert len(rules.with_changes([ALL[0], ALL[0]], [acl("unknown")])) == len(ALL)
    assert ALL[0] in rules
    assert acl("ab", principal="User:b") not in rules


def test_a_code_that_is_not_known_is_unknown():
    assert ResourceType(77) is ResourceType.UNKNOWN
    assert AclOperation(-1) is AclOperation.UNKNOWN
    assert Permission(9) is Permission.UNKNOWN
    assert PatternType(9) is PatternType.UNKNOWN
