"""Who may do what: `authorizer.class.name` and what Kafka's own authorizer reads."""

from dataclasses import dataclass
from typing import Final

from broker_sim.config.definition import BOOLEAN, STRING, declare

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZERS: Final = ("", STANDARD_AUTHORIZER)


@dataclass(frozen=True, kw_only=True)
class AuthorizerConfigs:
    """Mirrors `ServerConfigs.AUTHORIZER_CLASS_NAME_CONFIG`, and `StandardAuthorizer.configure`."""

    authorizer_class_name: str = declare(
        STRING, "", "Who decides what clients may do; everybody may do everything if not set."
    )
    super_users: str = declare(STRING, "", "Principals that may do everything, between semicolons.", internal=True)
    allow_everyone_if_no_acl_found: bool = declare(
        BOOLEAN, False, "Whether everybody may use a resource that no ACL is for.", internal=True
    )
