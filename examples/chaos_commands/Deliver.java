import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;

/** Sends orders and delivers each at least once, as a group would; exit code 1 if one is missing in the end. */
public final class Deliver {
    private static final int ORDERS = 60;
    private static final Duration LIMIT = Duration.ofSeconds(120);

    public static void main(String[] arguments) throws Exception {
        String servers = System.getenv("KAFKA_BOOTSTRAP_SERVERS");
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", servers),
                new IntegerSerializer(), new IntegerSerializer())) {
            for (int order = 0; order < ORDERS; order++) {
                producer.send(new ProducerRecord<>("orders", order)).get();
            }
        }
        Map<String, Object> group = Map.of("bootstrap.servers", servers, "group.id", "shop",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false", "max.poll.records", "1",
            "session.timeout.ms", "6000");
        Set<Integer> delivered = new TreeSet<>();
        int again = 0;
        long end = System.nanoTime() + LIMIT.toNanos();
        try (var consumer = new KafkaConsumer<>(group, new IntegerDeserializer(), new IntegerDeserializer())) {
            consumer.subscribe(List.of("orders"));
            while (delivered.size() < ORDERS && System.nanoTime() < end) {
                for (ConsumerRecord<Integer, Integer> order : consumer.poll(Duration.ofSeconds(1))) {
                    Thread.sleep(400);
                    again += delivered.add(order.value()) ? 0 : 1;
                    try {
                        consumer.commitSync();
                    } catch (CommitFailedException removed) {
                        break; // it is no member any more: the next poll joins again, and the order comes again
                    }
                }
            }
        }
        System.out.printf("java: %d of %d orders delivered, %d of them again%n", delivered.size(), ORDERS, again);
        System.exit(delivered.size() == ORDERS ? 0 : 1);
    }
}
