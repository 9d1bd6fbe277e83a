// A member of a group by Kafka's Java consumer; see ../conftest.py for what it is told and tells.

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class GroupMember {
    static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    static synchronized void tell(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static void tell(String event, Collection<TopicPartition> partitions) {
        String numbers = partitions.stream().map(one -> "" + one.partition())
            .sorted().collect(Collectors.joining(","));
        tell("{\"event\":\"" + event + "\",\"partitions\":[" + numbers + "]}");
    }

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[2];
        String strategy = arguments[5];
        Properties configs = new Properties();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("group.id", arguments[1]);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", "false");
        if (strategy.equals("consumer")) {
            configs.put("group.protocol", "consumer");
        } else {
            configs.put("session.timeout.ms", arguments[3]);
            configs.put("heartbeat.interval.ms", arguments[4]);
            configs.put("partition.assignment.strategy", ASSIGNORS.get(strategy));
        }
        AtomicBoolean left = new AtomicBoolean();
        Thread listener = new Thread(() -> {
            try {
                System.in.read();
            } catch (Exception ended) {
                // The test has ended.
            }
            left.set(true);
        });
        listener.setDaemon(true);
        listener.start();
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(configs, bytes, bytes)) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    tell("revoked", partitions);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    tell("assigned", partitions);
                }
            });
            while (!left.get()) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    String where = "\"partition\":" + record.partition() + ",\"offset\":";
                    tell("{\"event\":\"record\"," + where + record.offset() + "}");
                    var partition = new TopicPartition(record.topic(), record.partition());
                    consumer.commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1)));
                    tell("{\"event\":\"committed\"," + where + (record.offset() + 1) + "}");
                }
            }
        }
        tell("{\"event\":\"left\"}");
    }
}
