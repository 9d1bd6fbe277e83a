import random

import pytest

from broker_sim.errors import ConfigError
from broker_sim.metadata.acl import NO_ACLS, Acl, AclOperation, Acls, PatternType, Permission, ResourceType
from broker_sim.security import ANONYMOUS, Authorizer, KafkaPrincipal, parse_super_users

ALICE = KafkaPrincipal("User", "alice")
BOB = KafkaPrincipal("User", "bob")
HOST = "10.0.0.1"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
OPERATIONS = [op for op in AclOperation if op > AclOperation.ALL]


def acl(name="orders", operation=READ, permission=ALLOW, **more):
    fields = {"resource_type": TOPIC, "pattern_type": LITERAL, "principal": "User:alice", "host": "*", **more}
    return Acl(resource_name=name, operation=operation, permission=permission, **fields)


def allows(rules, name="orders", operation=READ, *, who=ALICE, host=HOST, resource_type=TOPIC, **more):
    authorizer = Authorizer(**more)
    return authorizer.decide(Acls(rules), who, host, operation, resource_type, name).is_allowed


@pytest.mark.parametrize(
    ("rule", "name", "allowed"),
    [
        (acl(), "orders", True),
        (acl(), "orders-eu", False),
        (acl("orders", pattern_type=PREFIXED), "orders-eu", True),
        (acl("orders", pattern_type=PREFIXED), "orders", True),
        (acl("orders", pattern_type=PREFIXED), "order", False),
        (acl("*"), "anything", True),
        (acl("*"), "*", True),
        (acl("*", pattern_type=PREFIXED), "anything", False),
        (acl(resource_type=GROUP), "orders", False),
        (acl(principal="User:*"), "orders", True),
        (acl(principal="User:bob"), "orders", False),
        (acl(principal="Group:alice"), "orders", False),
        (acl(host=HOST), "orders", True),
        (acl(host="10.0.0.2"), "orders", False),
        (acl(operation=AclOperation.ALL), "orders", True),
        (acl(operation=WRITE), "orders", False),
    ],
)
def test_a_rule_that_allows_fits_name_principal_host_and_operation(rule, name, allowed):
    assert allows([rule], name) is allowed


@pytest.mark.parametrize("name", ["orders", "*"])
@pytest.mark.parametrize("pattern_type", [LITERAL, PREFIXED])
def test_a_rule_that_denies_wins_over_all_that_allow(name, pattern_type):
    both = [acl("*"), acl("ord", pattern_type=PREFIXED), acl()]
    denial = acl(name, permission=DENY, principal="User:*", pattern_type=pattern_type)
    assert allows(both)
    assert allows([*both, denial]) is (name == "*" and pattern_type is PREFIXED)
    assert allows([*both, denial._replace(host="10.0.0.2")])
    assert allows([*both, denial._replace(operation=WRITE)])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_some_operations_imply_to_describe_but_only_where_they_are_allowed(operation):
    describes = {DESCRIBE, READ, WRITE, AclOperation.DELETE, AclOperation.ALTER}
    configs = {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    rule = acl(operation=operation)
    assert allows([rule], operation=DESCRIBE) is (operation in describes)
    assert allows([rule], operation=AclOperation.DESCRIBE_CONFIGS) is (operation in configs)
    everything = acl(operation=AclOperation.ALL)
    denial = acl(operation=operation, permission=DENY)
    assert allows([everything, denial], operation=DESCRIBE) is (operation is not DESCRIBE)


def test_a_resource_without_rules_is_closed_unless_it_is_configured_to_be_open():
    others = [acl("payments"), acl("pay", pattern_type=PREFIXED)]
    assert not allows(others)
    assert allows(others, allow_everyone_if_no_acl=True)
    # A rule for somebody else, for something else or from elsewhere closes it.
    for rule in (acl(principal="User:bob"), acl(operation=WRITE), acl("*", host="10.0.0.2")):
        assert not allows([rule], allow_everyone_if_no_acl=True)


def test_a_super_user_may_do_everything():
    denial = acl("*", permission=DENY, operation=AclOperation.ALL, principal="User:*")
    assert allows([denial], super_users=[ALICE])
    assert not allows([denial], super_users=[BOB])


def test_decision_names_the_rule():
    authorizer = Authorizer([BOB])
    deny = acl("ord", permission=DENY, pattern_type=PREFIXED)

    def rule_text(rules, who=ALICE):
        return authorizer.decide(Acls(rules), who, HOST, READ, TOPIC, "orders").rule_text

    assert rule_text([]) == "DefaultDeny"
    assert rule_text([acl(operation=WRITE)]) == "DefaultDeny"
    assert rule_text([], BOB) == "SuperUser"
    assert rule_text([acl(), deny]) == (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=ord, patternType=PREFIXED,"
        " principal=User:alice, host=*, operation=READ, permissionType=DENY))"
    )


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([acl(operation=WRITE)], True),
        ([acl(operation=AclOperation.ALL)], True),
        ([acl("*", WRITE, principal="User:*")], True),
        ([acl(operation=READ)], False),
        ([acl(operation=WRITE, host="10.0.0.2")], False),
        ([acl(operation=WRITE), acl("orders", WRITE, DENY)], False),
        ([acl(operation=WRITE), acl("ord", WRITE, DENY, pattern_type=PREFIXED)], False),
        ([acl(operation=WRITE), acl("*", WRITE, DENY)], False),
        ([acl("*", WRITE), acl("orders", WRITE, DENY)], True),
        ([acl("*", WRITE), acl("ord", WRITE, DENY, pattern_type=PREFIXED)], True),
        ([acl("ord", WRITE, pattern_type=PREFIXED), acl("orders", WRITE, DENY)], True),
        ([acl("ord", WRITE, pattern_type=PREFIXED), acl("ord", WRITE, DENY)], True),
        ([acl("ord", WRITE, pattern_type=PREFIXED), acl("or", WRITE, DENY, pattern_type=PREFIXED)], False),
        ([acl("pay", WRITE), acl("orders", WRITE, DENY), acl("orders", WRITE)], True),
    ],
)
def test_some_resource_is_open_that_no_denial_covers(rules, allowed):
    found = Authorizer().is_allowed_on_any(Acls(rules), ALICE, HOST, WRITE, TOPIC)
    assert found is allowed
    assert Authorizer([ALICE]).is_allowed_on_any(Acls(rules), ALICE, HOST, WRITE, TOPIC)


def expected(rules, who, host, operation, name):
    """Decide by looking at every rule."""
    of_name = [
        rule
        for rule in rules
        if (rule.pattern_type is PREFIXED and name.startswith(rule.resource_name))
        or (rule.pattern_type is LITERAL and rule.resource_name in {name, "*"})
    ]
    fitting = [rule for rule in of_name if rule.principal in {str(who), "User:*"} and rule.host in {host, "*"}]
    implying = {operation, AclOperation.ALL}
    if operation is DESCRIBE:
        implying |= {READ, WRITE}
    if any(r.permission is DENY and r.operation in {operation, AclOperation.ALL} for r in fitting):
        return False
    return any(rule.permission is ALLOW and rule.operation in implying for rule in fitting)


def test_rules_that_come_and_go_decide_as_a_look_at_each_one_does():
    rng = random.Random(7)
    names = ["a", "ab", "abc", "b", "*", "ba"]
    rules, current = NO_ACLS, set()
    for _ in range(300):
        added = {
            acl(
                rng.choice(names),
                rng.choice([READ, WRITE, DESCRIBE, AclOperation.ALL]),
                rng.choice([ALLOW, ALLOW, DENY]),
                pattern_type=rng.choice([LITERAL, PREFIXED]),
                principal=rng.choice(["User:alice", "User:bob", "User:*"]),
                host=rng.choice(["*", HOST]),
            )
            for _ in range(rng.randrange(3))
        }
        removed = set(rng.sample(sorted(current), min(len(current), rng.randrange(4))))
        before = (rules, set(rules))
        rules = rules.with_changes(added - removed, removed)
        assert set(before[0]) == before[1]
        current = (current - removed) | (added - removed)
        assert (set(rules), len(rules)) == (current, len(current))
        who, host = rng.choice([ALICE, BOB, ANONYMOUS]), rng.choice([HOST, "10.0.0.9"])
        operation, name = rng.choice([READ, WRITE, DESCRIBE]), rng.choice(names)
        decision = Authorizer().decide(rules, who, host, operation, TOPIC, name)
        assert decision.is_allowed is expected(current, who, host, operation, name)


def test_super_users_stand_between_semicolons():
    assert parse_super_users(" User:alice ; ;User:CN=a,O=b:c") == {ALICE, KafkaPrincipal("User", "CN=a,O=b:c")}
    assert parse_super_users("") == frozenset()
    with pytest.raises(ConfigError, match="principalType:principalName"):
        parse_super_users("alice")
