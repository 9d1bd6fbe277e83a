"""Random ACLs for a few topics, which differ in every field that decides whether a rule applies."""

from __future__ import annotations

import random
from typing import Final

from broker_sim.metadata.acl import Acl, AclOperation, PatternType, Permission, ResourceType

NAMES: Final = ("acl", "acl-a", "acl-ab", "acl-abc", "acl-b", "ac")
RULE_SETS: Final = 150
MOST_RULES: Final = 5
_PATTERNS: Final = (*NAMES, "*", "a", "acl-")
_OPERATIONS: Final = (
    *(AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    *(AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS, AclOperation.ALL, AclOperation.WRITE),
)


def random_rules(seed: int, principal: str, host: str) -> list[Acl]:
    """Return the rules of that seed, for that principal at that host, or for others."""
    rng = random.Random(seed)
    return [
        Acl(
            ResourceType.TOPIC,
            rng.choice(_PATTERNS),
            rng.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            rng.choice((principal, principal, "User:*", "User:bob")),
            rng.choice(("*", "*", host, "10.9.9.9")),
            rng.choice(_OPERATIONS),
            rng.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
        )
        for _ in range(rng.randint(1, MOST_RULES))
    ]
