"""Admin clients that manage ACLs, and clients that feel them; each logs in as its own user."""

import asyncio
import warnings

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import GroupAuthorizationFailedError
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from broker_sim import Cluster

with warnings.catch_warnings():
    # kafka-python reads its schemas with a function that Python 3.11 has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka as kafka_python
    from kafka import admin as names

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WAIT_S = 30
TOPIC = ("orders", ResourcePatternType.LITERAL, "User:billing", "*")
READ = AclBinding(ResourceType.TOPIC, *TOPIC, AclOperation.READ, AclPermissionType.ALLOW)
ANY_READ = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.READ, AclPermissionType.ANY
)


@pytest.fixture(scope="module")
def cluster():
    with Cluster(
        1,
        security="sasl_plaintext",
        users={"admin": "a", "billing": "b"},
        topics=["orders"],
        configs={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
            "offsets.topic.replication.factor": "1",
        },
    ) as made:
        yield made


def test_acls_of_one_client_are_those_of_the_other(cluster):
    admin = AdminClient(cluster.client_config("confluent", user="admin"))
    (created,) = admin.create_acls([READ]).values()
    created.result(WAIT_S)
    assert admin.describe_acls(ANY_READ).result(WAIT_S) == [READ]
    other = kafka_python.KafkaAdminClient(**cluster.client_config("kafka-python", user="admin"))
    wanted = names.ACLFilter(
        principal=None,
        host=None,
        operation=names.ACLOperation.ANY,
        permission_type=names.ACLPermissionType.ANY,
        resource_pattern=names.ResourcePatternFilter(
            names.ResourceType.TOPIC, "orders", names.ACLResourcePatternType.MATCH
        ),
    )
    (found,), _ = other.describe_acls(wanted)
    assert (found.principal, found.operation) == ("User:billing", names.ACLOperation.READ)
    other.close()
    (deleted,) = admin.delete_acls([ANY_READ]).values()
    assert deleted.result(WAIT_S) == [READ]


def test_who_is_no_super_user_cannot_manage_acls(cluster):
    admin = AdminClient(cluster.client_config("confluent", user="billing"))
    # It does not tell the error of DescribeAcls, of a real Kafka neither.
    assert admin.describe_acls(ANY_READ).result(WAIT_S) == []
    assert [denial.api for denial in cluster.denials("User:billing")] == ["DescribeAcls"]
    (created,) = admin.create_acls([READ]).values()
    with pytest.raises(KafkaException) as refused:
        created.result(WAIT_S)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_a_consumer_hears_that_it_may_not_use_the_group(cluster):
    cluster.grant("billing", "READ", "topic:orders")
    config = cluster.client_config("confluent", user="billing")
    consumer = Consumer(config | {"group.id": "no"})
    consumer.subscribe(["orders"])
    message = consumer.poll(WAIT_S)
    assert message.error().code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()


def test_aiokafka_hears_that_it_may_not_use_the_group(cluster):
    async def run():
        config = cluster.client_config("aiokafka", user="billing")
        consumer = AIOKafkaConsumer("orders", group_id="no", **config)
        with pytest.raises(GroupAuthorizationFailedError):
            await consumer.start()
        await consumer.stop()

    asyncio.run(run())
