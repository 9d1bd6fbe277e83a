import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeShareGroupsOptions;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ShareGroupDescription;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Calls what Kafka's admin client has for share groups, while a group has a member and when it is empty.
 *
 * <p>Arguments: bootstrap servers, and names of a topic and of a group that nobody uses. Prints a line for each call:
 * its name, a tab, and its outcome.
 */
public final class ShareAdmin {
    private static final int RECORDS = 4;
    private static final String UNKNOWN = "unknown";

    private final Admin admin;
    private final String servers;
    private final String topic;
    private final String other;
    private final String group;

    private interface Call {
        Object outcome() throws Exception;
    }

    private ShareAdmin(Admin admin, String servers, String topic, String group) {
        this.admin = admin;
        this.servers = servers;
        this.topic = topic;
        this.other = topic + "-other";
        this.group = group;
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            ShareAdmin program = new ShareAdmin(admin, arguments[0], arguments[1], arguments[2]);
            program.prepare();
            program.callForUnknownGroup();
            try (KafkaShareConsumer<String, String> member = program.member()) {
                program.callForMember();
            }
            program.waitUntil(GroupState.EMPTY);
            program.callForEmptyGroup();
        }
    }

    private static void tell(String name, Call call) throws Exception {
        Object outcome;
        try {
            outcome = call.outcome();
        } catch (ExecutionException failed) {
            outcome = failed.getCause().getClass().getSimpleName();
        }
        System.out.println(name + "\t" + outcome);
    }

    // -- the group --------------------------------------------------------------------------------

    private void prepare() throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, 2, (short) 3), new NewTopic(other, 1, (short) 3))).all().get();
        Properties config = new Properties();
        config.put("bootstrap.servers", servers);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < 2 * RECORDS; i++) {
                producer.send(new ProducerRecord<>(topic, i % 2, null, "value"));
            }
        }
        tell("incrementalAlterConfigs", () -> setConfig("share.auto.offset.reset", "earliest"));
        tell("incrementalAlterConfigs, a wrong value", () -> setConfig("share.record.lock.duration.ms", "1"));
    }

    private Object setConfig(String name, String value) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        return admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
    }

    /** Returns a consumer that has accepted all records. */
    private KafkaShareConsumer<String, String> member() {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "group.id", group, "client.id", "member"));
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        for (int count = 0; count < 2 * RECORDS;) {
            count += consumer.poll(Duration.ofSeconds(1)).count();
        }
        consumer.commitSync();
        return consumer;
    }

    private ShareGroupDescription description() throws Exception {
        DescribeShareGroupsOptions options = new DescribeShareGroupsOptions().includeAuthorizedOperations(true);
        return admin.describeShareGroups(List.of(group), options).describedGroups().get(group).get();
    }

    private void waitUntil(GroupState state) throws Exception {
        while (description().groupState() != state) {
            Thread.sleep(100);
        }
    }

    private Object described() throws Exception {
        ShareGroupDescription found = description();
        List<String> members = found.members().stream().map(member -> {
            Set<String> assigned = new TreeSet<>();
            member.assignment().topicPartitions().forEach(one -> assigned.add(one.toString()));
            return member.clientId() + " " + assigned;
        }).toList();
        return found.groupState() + " " + members + " " + new TreeSet<>(found.authorizedOperations());
    }

    private Object listed(ListGroupsOptions options) throws Exception {
        return admin.listGroups(options).all().get().stream().filter(one -> one.groupId().equals(group))
            .map(one -> one.type().get() + " " + one.protocol() + " " + one.groupState().get()).toList();
    }

    /** Returns lags: where a partition starts is told late, with the next acknowledgement. */
    private Object offsets(ListShareGroupOffsetsSpec spec) throws Exception {
        Map<String, String> found = new TreeMap<>();
        admin.listShareGroupOffsets(Map.of(group, spec)).partitionsToOffsetInfo(group).get().forEach(
            (partition, info) -> found.put(
                partition.toString(), info == null ? "none" : "lag " + info.lag().get()));
        return found;
    }

    private Object offsetsOfAll() throws Exception {
        return offsets(new ListShareGroupOffsetsSpec());
    }

    private Object offsetsOf(Collection<TopicPartition> partitions) throws Exception {
        return offsets(new ListShareGroupOffsetsSpec().topicPartitions(partitions));
    }

    private Object alterOffset(String altered, int partition, long offset) throws Exception {
        TopicPartition one = new TopicPartition(altered, partition);
        return admin.alterShareGroupOffsets(group, Map.of(one, offset)).partitionResult(one).get();
    }

    private Object deleteOffsets(String deleted) throws Exception {
        return admin.deleteShareGroupOffsets(group, Set.of(deleted)).topicResult(deleted).get();
    }

    private Object delete() throws Exception {
        return admin.deleteShareGroups(List.of(group)).all().get();
    }

    // -- the calls --------------------------------------------------------------------------------

    private void callForUnknownGroup() throws Exception {
        tell("unknown group: describeShareGroups", this::described);
        tell("unknown group: listShareGroupOffsets", this::offsetsOfAll);
        tell("unknown group: deleteShareGroupOffsets", () -> deleteOffsets(topic));
        tell("unknown group: deleteShareGroups", this::delete);
    }

    private void callForMember() throws Exception {
        ListGroupsOptions options = ListGroupsOptions.forShareGroups();
        tell("member: describeShareGroups", this::described);
        tell("member: listGroups", () -> listed(new ListGroupsOptions()));
        tell("member: listGroups of type share", () -> listed(options));
        tell("member: listGroups, stable", () -> listed(options.inGroupStates(Set.of(GroupState.STABLE))));
        tell("member: listGroups, empty", () -> listed(options.inGroupStates(Set.of(GroupState.EMPTY))));
        tell("member: listShareGroupOffsets", this::offsetsOfAll);
        tell("member: listShareGroupOffsets of some", () -> offsetsOf(
            List.of(new TopicPartition(topic, 1), new TopicPartition(topic, 9), new TopicPartition(UNKNOWN, 0))));
        tell("member: alterShareGroupOffsets", () -> alterOffset(topic, 0, 1));
        tell("member: deleteShareGroupOffsets", () -> deleteOffsets(topic));
        tell("member: deleteShareGroups", this::delete);
        tell("member: describeConsumerGroups", () -> admin.describeConsumerGroups(List.of(group)).all().get());
    }

    private void callForEmptyGroup() throws Exception {
        tell("empty: describeShareGroups", this::described);
        tell("empty: alterShareGroupOffsets", () -> alterOffset(topic, 0, 2));
        tell("empty: alterShareGroupOffsets, a topic that nobody read", () -> alterOffset(other, 0, 0));
        tell("empty: alterShareGroupOffsets, an unknown topic", () -> alterOffset(UNKNOWN, 0, 0));
        tell("empty: listShareGroupOffsets", this::offsetsOfAll);
        tell("empty: deleteShareGroupOffsets", () -> deleteOffsets(other));
        tell("empty: deleteShareGroupOffsets, once more", () -> deleteOffsets(other));
        tell("empty: deleteShareGroupOffsets, an unknown topic", () -> deleteOffsets(UNKNOWN));
        tell("empty: listShareGroupOffsets", this::offsetsOfAll);
        tell("empty: deleteShareGroups", this::delete);
        tell("empty: deleteShareGroups, once more", this::delete);
        tell("empty: listGroups", () -> listed(ListGroupsOptions.forShareGroups()));
    }
}
