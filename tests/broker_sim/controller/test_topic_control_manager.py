"""Claims about creating, growing and deleting topics, as ReplicationControlManagerTest's."""

from contextlib import contextmanager

import pytest

from broker_sim.controller import CreatableTopic, NewPartitions, Outcome
from broker_sim.errors import ApiError, ErrorCode


@contextmanager
def raises(code):
    with pytest.raises(ApiError) as caught:
        yield
    assert caught.value.error_code is code


def create(cluster, *topics, **options):
    return cluster.controller.create_topics(list(topics), **options)


def refusal(cluster, topic):
    (result,) = create(cluster, topic)
    assert result.topic_id == bytes(16)
    return result.outcome.error_code, result.outcome.error_message


def test_new_topic_is_led_by_its_first_replicas_with_all_in_sync(cluster):
    (result,) = create(cluster, CreatableTopic("t", 6, 3))
    topic = cluster.image.topics["t"]
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (topic.topic_id, 6, 3)
    for state in topic.partitions:
        assert state.isr == state.replicas
        assert state.leader == state.replicas[0]
        assert (state.leader_epoch, state.partition_epoch) == (0, 0)


def test_defaults_come_from_the_controller(make_cluster):
    configs = {"num.partitions": "4", "default.replication.factor": "2"}
    cluster = make_cluster(configs).start(1, 2, 3)
    (result,) = create(cluster, CreatableTopic("t"))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_topic_ids_are_distinct_and_follow_from_the_seed(make_cluster):
    def ids(seed):
        cluster = make_cluster(seed=seed).start(1)
        return [r.topic_id for r in create(cluster, *(CreatableTopic(f"t{i}") for i in range(50)))]

    assert len(set(ids(1))) == 50
    assert ids(1) == ids(1)
    assert ids(1) != ids(2)
    assert all(topic_id[0] >> 2 != 62 for topic_id in ids(3))


def test_fenced_replica_is_placed_but_not_in_sync(cluster):
    cluster.kill(3)
    create(cluster, CreatableTopic("t", 1, 3))
    state = cluster.partition("t")
    assert set(state.replicas) == {1, 2, 3}
    assert set(state.isr) == {1, 2}


def test_broker_in_controlled_shutdown_gets_no_new_replicas(cluster):
    cluster.create("t", (1, 2, 3))
    cluster.heartbeat(1, shutdown=True)
    create(cluster, CreatableTopic("u", 20, 2))
    assert all(set(state.replicas) == {2, 3} for state in cluster.image.topics["u"].partitions)


def test_validate_only_changes_nothing(cluster):
    before = cluster.image
    (result,) = create(cluster, CreatableTopic("t", 2, 2), validate_only=True)
    assert (result.outcome.ok, result.num_partitions) == (True, 2)
    assert cluster.image is before


def test_other_topics_are_created_beside_a_bad_one(cluster):
    codes = [r.outcome.error_code for r in create(cluster, CreatableTopic("a b"), CreatableTopic("c"))]
    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]
    assert list(cluster.image.topics) == ["c"]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a/b", "a\n"])
def test_invalid_name_is_refused(cluster, name):
    code, message = refusal(cluster, CreatableTopic(name))
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert message.startswith("Topic name is invalid: ")


def test_the_longest_name_is_allowed(cluster):
    assert create(cluster, CreatableTopic("x" * 249))[0].outcome.ok


def test_names_that_metrics_cannot_tell_apart_collide(cluster):
    create(cluster, CreatableTopic("a.b_c"))
    code, message = refusal(cluster, CreatableTopic("a_b.c"))
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert message == "Topic 'a_b.c' collides with existing topic: a.b_c"


def test_the_metadata_topic_cannot_be_created(cluster):
    code, _ = refusal(cluster, CreatableTopic("__cluster_metadata"))
    assert code is ErrorCode.INVALID_REQUEST


def test_existing_topic_is_refused(cluster):
    create(cluster, CreatableTopic("a.b"))
    assert refusal(cluster, CreatableTopic("a.b")) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'a.b' already exists.")


def test_name_given_twice_is_refused_once(cluster):
    results = create(cluster, CreatableTopic("a"), CreatableTopic("b"), CreatableTopic("a"))
    assert [(r.name, r.outcome.error_code) for r in results] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
    ]


def test_too_many_partitions_in_one_request_are_a_policy_violation(cluster):
    with raises(ErrorCode.POLICY_VIOLATION):
        create(cluster, CreatableTopic("a", 5_000), CreatableTopic("b", 5_001))


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (
            CreatableTopic("t", 0),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            CreatableTopic("t", -2),
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            CreatableTopic("t", 1, 0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            CreatableTopic("t", 1, 4),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            (
                "Unable to replicate the partition 4 time(s): The target replication factor of 4"
                " cannot be reached because only 3 broker(s) are registered or some brokers have all"
                " their log directories cordoned."
            ),
        ),
        (
            CreatableTopic("t", replication_factor=2, assignments=[(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            ("A manual partition assignment was specified, but replication factor was not set to -1."),
        ),
        (
            CreatableTopic("t", num_partitions=2, assignments=[(0, [1])]),
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            CreatableTopic("t", assignments=[(0, [1]), (0, [2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            CreatableTopic("t", assignments=[(0, [1]), (2, [2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            CreatableTopic("t", assignments=[(0, [])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            CreatableTopic("t", assignments=[(0, [1, 9])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            CreatableTopic("t", assignments=[(0, [1, 2, 1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            CreatableTopic("t", assignments=[(0, [1, 2]), (1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            (
                "The manual partition assignment includes a partition with 1 replica(s), but this is"
                " not consistent with previous partitions, which have 2 replica(s)."
            ),
        ),
        (CreatableTopic("t", configs={"nope": "1"}), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            CreatableTopic("t", configs={"retention.ms": "soon"}),
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        (
            CreatableTopic("t", configs={"retention.ms": None}),
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
    ],
)
def test_impossible_topic_is_refused_with_kafkas_message(cluster, topic, code, message):
    assert refusal(cluster, topic) == (code, message)
    assert cluster.image.topics == {}


def test_without_live_brokers_nothing_can_be_placed(make_cluster):
    cluster = make_cluster()
    cluster.register(1)
    assert refusal(cluster, CreatableTopic("t", 1, 1)) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        (
            "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have"
            " all their log directories cordoned."
        ),
    )
    code, message = refusal(cluster, CreatableTopic("t", assignments=[(0, [1])]))
    assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message.endswith("for partition 0 are fenced or in controlled shutdown.")


def test_a_manual_assignment_is_followed(cluster):
    cluster.kill(2)
    cluster.create("t", (2, 3, 1), (1, 2, 3))
    first, second = cluster.image.topics["t"].partitions
    assert (first.replicas, first.isr, first.leader) == ((2, 3, 1), (3, 1), 3)
    assert (second.replicas, second.isr, second.leader) == ((1, 2, 3), (1, 3), 1)


def test_configs_of_a_new_topic_are_kept(cluster):
    cluster.create("t", (1,), configs={"cleanup.policy": "compact"})
    assert cluster.image.topics["t"].configs == {"cleanup.policy": "compact"}


CONFIG, OTHER_CONFIG = {"retention.ms": "60000"}, {"max.message.bytes": "1000"}


class TestRecordsOfCreatedTopics:
    """Seen on a running 4.4.0, which writes at most 10 000 records for a request."""

    @pytest.mark.parametrize(
        "topics",
        [
            [CreatableTopic("t", 9_999, 1)],
            [CreatableTopic("t", 9_998, 1, configs=CONFIG)],
            [CreatableTopic(f"t{number}", 999, 1) for number in range(10)],
        ],
    )
    def test_ten_thousand_records_are_written(self, cluster, topics):
        assert all(result.outcome.ok for result in cluster.controller.create_topics(topics, validate_only=True))

    @pytest.mark.parametrize(
        "topics",
        [
            [CreatableTopic("t", 10_000, 1)],
            [CreatableTopic("t", 9_998, 1, configs=CONFIG | OTHER_CONFIG)],
            [CreatableTopic(f"t{number}", 1_000, 1) for number in range(10)],
        ],
    )
    def test_more_are_refused_for_all_topics(self, cluster, topics):
        before = cluster.image
        with pytest.raises(ApiError, match="Unable to perform excessively large batch operation") as refused:
            cluster.controller.create_topics(topics)
        assert refused.value.error_code is ErrorCode.POLICY_VIOLATION
        assert cluster.image is before


class TestCreatePartitions:
    def grow(self, cluster, *topics, **options):
        results = cluster.controller.create_partitions(list(topics), **options)
        return [outcome for _, outcome in results]

    def test_new_partitions_follow_the_old_ones_with_as_many_replicas(self, cluster):
        cluster.create("t", (1, 2))
        old = cluster.partition("t")
        (outcome,) = self.grow(cluster, NewPartitions("t", 4))
        assert outcome.ok
        states = cluster.image.topics["t"].partitions
        assert states[0] is old
        assert [len(state.replicas) for state in states] == [2, 2, 2, 2]

    def test_new_partitions_may_be_assigned(self, cluster):
        cluster.create("t", (1, 2))
        (outcome,) = self.grow(cluster, NewPartitions("t", 3, [(2, 3), (3, 1)]))
        assert outcome.ok
        assert [s.replicas for s in cluster.image.topics["t"].partitions] == [(1, 2), (2, 3), (3, 1)]

    @pytest.mark.parametrize(
        ("wanted", "code", "message"),
        [
            (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition"),
            (
                NewPartitions("t", 1),
                ErrorCode.INVALID_PARTITIONS,
                "The topic t currently has 2 partition(s); 1 would not be an increase.",
            ),
            (
                NewPartitions("t", 4, [(1, 2)]),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Attempted to add 2 additional partition(s), but only 1 assignment(s) were",
            ),
            (
                NewPartitions("t", 3, [(1, 2, 3)]),
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes a partition with 3 replica(s)",
            ),
            (NewPartitions("t", 10_003), ErrorCode.POLICY_VIOLATION, "Excessively large number"),
        ],
    )
    def test_invalid_request_is_refused(self, cluster, wanted, code, message):
        cluster.create("t", (1, 2), (2, 1))
        (outcome,) = self.grow(cluster, wanted)
        assert outcome.error_code is code
        assert outcome.error_message.startswith(message)

    def test_unknown_topic_is_refused_without_a_message(self, cluster):
        (outcome,) = self.grow(cluster, NewPartitions("x", 4))
        assert outcome == Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_validate_only_changes_nothing(self, cluster):
        cluster.create("t", (1, 2))
        before = cluster.image
        assert self.grow(cluster, NewPartitions("t", 9), validate_only=True)[0].ok
        assert cluster.image is before


class TestDeleteTopics:
    def codes(self, cluster, *keys):
        return [(r.name, r.outcome.error_code) for r in cluster.controller.delete_topics(list(keys))]

    def test_topics_are_deleted_by_name_and_by_id(self, cluster):
        cluster.create("a", (1,))
        topic_id = cluster.create("b", (1,))
        cluster.create("c", (1,))
        assert self.codes(cluster, "a", topic_id) == [("a", ErrorCode.NONE), ("b", ErrorCode.NONE)]
        assert list(cluster.image.topics) == ["c"]
        assert len(cluster.image.topic_names) == 1

    def test_a_name_can_be_used_again_with_another_id(self, cluster):
        first = cluster.create("a", (1,), configs={"retention.ms": "1"})
        self.codes(cluster, "a")
        assert cluster.create("a", (1,)) != first
        assert cluster.image.topics["a"].configs == {}

    def test_unknown_topic_is_named_as_in_the_request(self, cluster):
        assert self.codes(cluster, "x", b"x" * 16, bytes(16)) == [
            ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (None, ErrorCode.UNKNOWN_TOPIC_ID),
            (None, ErrorCode.INVALID_REQUEST),
        ]

    def test_topic_named_twice_is_not_deleted(self, cluster):
        cluster.create("a", (1,))
        assert self.codes(cluster, "a", "a") == [("a", ErrorCode.INVALID_REQUEST)]
        assert "a" in cluster.image.topics

    def test_name_beside_its_own_id_is_refused(self, cluster):
        topic_id = cluster.create("a", (1,))
        assert ("a", ErrorCode.INVALID_REQUEST) in self.codes(cluster, "a", topic_id)

    def test_delete_topic_enable_switches_deletion_off(self, make_cluster):
        cluster = make_cluster({"delete.topic.enable": "false"}).start(1)
        cluster.create("a", (1,))
        with raises(ErrorCode.TOPIC_DELETION_DISABLED):
            self.codes(cluster, "a")
