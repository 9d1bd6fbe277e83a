"""Setting, deleting and describing SCRAM credentials, without a SASL listener.

Kafka: ScramControlManager, ScramImage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.protocol import messages
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.helpers.mechanisms import committed as metadata_committed
from broker_sim_integration.scenarios.helpers.observe import whole_response
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

Alter = messages.AlterUserScramCredentialsRequest
Deletion = Alter.ScramCredentialDeletion
Upsertion = Alter.ScramCredentialUpsertion
Describe = messages.DescribeUserScramCredentialsRequest

SHA_256: Final = 1
SHA_512: Final = 2
UNKNOWN: Final = 3
FEWEST: Final = 4_096
MOST: Final = 16_384
SALT: Final = b"salt"
SALTED: Final = b"s" * 32
MANY: Final = 20


def put(
    user: str = "u",
    mechanism: int = SHA_256,
    iterations: int = FEWEST,
    salt: bytes = SALT,
    salted_password: bytes = SALTED,
) -> Upsertion:
    """Return a change that sets a credential."""
    return Upsertion(user, mechanism, iterations, salt, salted_password)


def drop(user: str = "u", mechanism: int = SHA_256) -> Deletion:
    """Return a change that deletes a credential."""
    return Deletion(user, mechanism)


def alter(client: BrokerClient, *changes: Deletion | Upsertion) -> Reply[messages.AlterUserScramCredentialsResponse]:
    """Send the changes, with deletions and upsertions in separate lists; return the response."""
    request = Alter(
        [change for change in changes if isinstance(change, Deletion)],
        [change for change in changes if isinstance(change, Upsertion)],
    )
    return client.request(request, 0, messages.AlterUserScramCredentialsResponse)


def describe(client: BrokerClient, *users: str) -> Reply[messages.DescribeUserScramCredentialsResponse]:
    """Describe these users, or all users without arguments; return the response."""
    request = Describe([Describe.UserName(user) for user in users])
    return client.request(request, 0, messages.DescribeUserScramCredentialsResponse)


def forget_all(cluster: ClusterUnderTest, client: BrokerClient) -> None:
    """Delete all credentials, now and at the end of the scenario."""

    def forget() -> None:
        results = describe(client).message.results
        for result in results:
            for info in result.credential_infos:
                alter(client, drop(result.user, info.mechanism))

    forget()
    cluster.on_close(forget)


REFUSED: Final[tuple[tuple[str, tuple[Deletion | Upsertion, ...]], ...]] = (
    ("nothing", ()),
    ("mechanism 0", (put(mechanism=0),)),
    ("mechanism 3", (put(mechanism=UNKNOWN),)),
    ("mechanism -1", (put(mechanism=-1),)),
    ("too few", (put(iterations=FEWEST - 1),)),
    ("too few for SHA-512", (put(mechanism=SHA_512, iterations=FEWEST - 1),)),
    ("negative", (put(iterations=-1),)),
    ("too many", (put(iterations=MOST + 1),)),
    ("no name", (put(""),)),
    ("no name to delete", (drop(""),)),
    ("no name, no mechanism", (put("", UNKNOWN),)),
    ("unknown mechanism to delete", (drop(mechanism=UNKNOWN),)),
    ("not there", (drop(),)),
    ("twice", (put(), put(mechanism=SHA_512))),
    ("three times", (put(), put(mechanism=SHA_512), put())),
    ("good, then bad", (put(), put(mechanism=UNKNOWN))),
    ("bad, then good", (put(mechanism=UNKNOWN), put())),
    ("not there, and set", (drop(), put())),
    ("no salted password", (put(salted_password=b""),)),
)
"""Changes that are rejected completely."""


@scenario(topology="1 partition x 1 replica")
def bad_scram_credentials_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown mechanism, iterations out of bounds, no name, a user twice: each gets an error, and no user exists."""
    client = cluster.connect(cluster.first)
    forget_all(cluster, client)
    for step, changes in REFUSED:
        yield whole_response(step, cluster, alter(client, *changes), metadata_committed())
    Publication(cluster).wait()
    yield whole_response("described", cluster, describe(client), at_once())


@scenario(topology="1 partition x 1 replica")
def scram_credentials_are_set_described_and_deleted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One user after the other, so that only the order of results within a user matters."""
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    forget_all(cluster, client)
    steps: tuple[tuple[str, tuple[Deletion | Upsertion, ...]], ...] = (
        ("set", (put(),)),
        ("most iterations", (put("most", iterations=MOST),)),
        ("no salt", (put("no salt", salt=b""),)),
        ("replaced", (put(iterations=5_000),)),
        ("altered twice", (drop(), put(mechanism=SHA_512))),
        ("another mechanism to delete", (drop(mechanism=SHA_512),)),
        ("deleted", (drop(),)),
    )
    for step, changes in steps:
        yield whole_response(step, cluster, alter(client, *changes), metadata_committed())
        published.wait()
        for broker in cluster.brokers:
            reply = describe(cluster.clients.ask(broker), "u")
            role = cluster.brokers.role(broker)
            yield whole_response(f"{step}, described by {role}", cluster, reply, at_once())
    for name, users in (("an unknown one", ("most", "u")), ("one twice", ("most", "most"))):
        yield whole_response(name, cluster, describe(client, *users), at_once())


@scenario(topology="1 partition x 1 replica")
def scram_results_come_in_the_order_of_hash_tables(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Deletions, then upsertions, then errors; each in the order of a HashMap."""
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    forget_all(cluster, client)
    users = [f"user-{number}" for number in range(MANY)]
    reply = alter(client, *map(put, users))
    yield whole_response("set", cluster, reply, metadata_committed())
    published.wait()
    yield whole_response("described", cluster, describe(client, *users), at_once())
    mixed = (put(f"new-{number}", 1 + number % 3) for number in range(MANY))
    dropped = (drop(user, 1 + number % 3) for number, user in enumerate(users))
    reply = alter(client, *mixed, *dropped)
    yield whole_response("mixed", cluster, reply, metadata_committed())
    published.wait()
    yield whole_response("all of them", cluster, describe(client), at_once())
