"""Setting, removing and describing quotas of clients. Kafka: ClientQuotaControlManager, ClientQuotasImage (KIP-546)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.families.quotas.support.client_quotas import (
    Alter,
    alter,
    describe,
    entry,
    forget_all,
)
from broker_sim_integration.scenarios.helpers.mechanisms import committed as metadata_committed
from broker_sim_integration.scenarios.helpers.observe import whole_response
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

A: Final = {"user": "a"}
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
ENTRIES: Final = ("entries",)

REFUSED: Final[tuple[tuple[str, tuple[Alter.EntryData, ...]], ...]] = (
    ("nothing", ()),
    ("no entity", (entry({}, producer_byte_rate=1),)),
    ("unknown type", (entry({"topic": "t"}, producer_byte_rate=1),)),
    ("no name", (entry({"user": ""}, producer_byte_rate=1),)),
    ("no client id", (entry({"client-id": ""}, producer_byte_rate=1),)),
    ("ip and user", (entry({"ip": "1.2.3.4", "user": "a"}, connection_creation_rate=1),)),
    ("no address", (entry({"ip": "no-such-host.invalid"}, connection_creation_rate=1),)),
    ("bytes of an ip", (entry({"ip": "1.2.3.4"}, producer_byte_rate=1),)),
    ("connections of a user", (entry(A, connection_creation_rate=1),)),
    ("half a connection", (entry({"ip": None}, connection_creation_rate=1.5),)),
    ("too many connections", (entry({"ip": None}, connection_creation_rate=2**31),)),
    ("unknown quota", (entry(A, nope=1),)),
    ("zero", (Alter.EntryData([Alter.EntityData("user", "a")], [Alter.OpData("producer_byte_rate")]),)),
    ("negative", (entry(A, producer_byte_rate=-1),)),
    ("negative percentage", (entry(A, request_percentage=-0.5),)),
    ("half a byte", (entry(A, consumer_byte_rate=1.5),)),
    ("too many bytes", (entry(A, consumer_byte_rate=1e19),)),
    ("endless bytes", (entry(A, producer_byte_rate=math.inf),)),
    ("good, then bad", (entry(A, producer_byte_rate=7, nope=1),)),
)
"""Changes that are rejected completely."""
FILTERS: Final = (
    ("all", (), False),
    ("none", (), True),
    ("a user", (("user", EXACT, "a"),), False),
    ("a user alone", (("user", EXACT, "a"),), True),
    ("the default user", (("user", DEFAULT, None),), True),
    ("any user", (("user", SPECIFIED, None),), False),
    ("any user with a client id", (("user", SPECIFIED, None), ("client-id", SPECIFIED, None)), True),
    ("a user and a client id", (("client-id", EXACT, "x"), ("user", EXACT, "a")), False),
    ("any ip", (("ip", SPECIFIED, None),), True),
    ("nobody", (("user", EXACT, ""),), False),
)
BAD_FILTERS: Final = (
    ("no type", (("", EXACT, "a"),)),
    ("unknown type", (("topic", EXACT, "a"),)),
    ("twice", (("user", EXACT, "a"), ("user", DEFAULT, None))),
    ("exactly nothing", (("user", EXACT, None),)),
    ("a default with a name", (("user", DEFAULT, "a"),)),
    ("any with a name", (("user", SPECIFIED, "a"),)),
    ("unknown match", (("user", 3, None),)),
    ("ip and user", (("ip", SPECIFIED, None), ("user", SPECIFIED, None))),
)


@scenario(topology="1 partition x 1 replica")
def bad_quotas_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Invalid entities, names and values: each gets an error with a message, and no quota is set."""
    client = cluster.connect(cluster.first)
    forget_all(cluster, client)
    for step, entries in REFUSED:
        yield whole_response(step, cluster, alter(client, *entries), metadata_committed())
    Publication(cluster).wait()
    yield whole_response("described", cluster, describe(client), at_once())


@scenario(topology="1 partition x 1 replica")
def quotas_are_set_changed_and_removed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All quotas of an entity change or none; unnamed ones stay; a request with validate_only changes nothing."""
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    forget_all(cluster, client)
    steps: tuple[tuple[str, tuple[Alter.EntryData, ...], bool], ...] = (
        ("validated", (entry(A, producer_byte_rate=1),), True),
        ("set", (entry(A, producer_byte_rate=1, request_percentage=0.5),), False),
        ("changed", (entry(A, producer_byte_rate=2, controller_mutation_rate=0.1),), False),
        ("one bad", (entry(A, producer_byte_rate=3, consumer_byte_rate=0.5),), False),
        ("another one not there", (entry(A, consumer_byte_rate=None),), False),
        ("one removed", (entry(A, producer_byte_rate=None),), False),
        ("removed", (entry(A, request_percentage=None, controller_mutation_rate=None),), False),
    )
    for step, entries, validate_only in steps:
        reply = alter(client, *entries, validate_only=validate_only)
        yield whole_response(step, cluster, reply, metadata_committed())
        published.wait()
        for broker in cluster.brokers:
            found = describe(cluster.clients.ask(broker))
            role = cluster.brokers.role(broker)
            yield whole_response(f"{step}, described by {role}", cluster, found, at_once())


@scenario(topology="1 partition x 1 replica")
def an_entity_named_twice_is_refused_the_second_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The second entry is rejected, the first one is applied. If a quota is named twice, neither value is applied."""
    client = cluster.connect(cluster.first)
    forget_all(cluster, client)
    twice = Alter.OpData("producer_byte_rate", 1.0)
    for step, entries in (
        ("entity", (entry(A, producer_byte_rate=1), entry(A, consumer_byte_rate=1))),
        ("quota", (Alter.EntryData([Alter.EntityData("user", "b")], [twice, twice]),)),
        ("type", (Alter.EntryData([Alter.EntityData("user", "c"), Alter.EntityData("user", "d")], [twice]),)),
    ):
        yield whole_response(step, cluster, alter(client, *entries), metadata_committed())
    Publication(cluster).wait()
    reply = describe(client)
    yield whole_response("described", cluster, reply, at_once(), unordered=ENTRIES)


@scenario(topology="1 partition x 1 replica")
def filters_find_quotas(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Filters by name, by default and by type, strict or not; invalid ones get an error."""
    client = cluster.connect(cluster.first)
    published = Publication(cluster)
    forget_all(cluster, client)
    for names in (
        A,
        {"client-id": "x"},
        {"client-id": "x", "user": "a"},
        {"client-id": None, "user": "a"},
        {"user": None},
    ):
        alter(client, entry(names, producer_byte_rate=1e9))
    alter(client, entry({"ip": "10.0.0.1"}, connection_creation_rate=1))
    published.wait()
    for step, components, strict in FILTERS:
        reply = describe(client, *components, strict=strict)
        yield whole_response(step, cluster, reply, at_once(), unordered=ENTRIES)
    for step, wrong in BAD_FILTERS:
        yield whole_response(f"refused: {step}", cluster, describe(client, *wrong), at_once())
