import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consumes partition 0 of some topics with Kafka's own share consumer.
 *
 * <p>Arguments: bootstrap servers, number of records, and per case a text TOPIC,GROUP,MODE. The mode is that of
 * acknowledgement, or "record_limit" for one record at a time. An explicit one releases each third record when it
 * comes the first time, rejects each fifth, and accepts all others. Prints per case one line with tabs: the topic, the
 * deliveries of each offset, and what a second consumer of the group gets.
 */
public final class ShareConsume {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final Duration SHORT = Duration.ofSeconds(3);

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        for (String text : List.of(arguments).subList(2, arguments.length)) {
            String[] parts = text.split(",");
            produce(arguments[0], parts[0], count);
            Map<Long, List<Short>> deliveries = new TreeMap<>();
            try (KafkaShareConsumer<String, String> consumer = consumer(arguments[0], parts)) {
                consume(consumer, parts[2], count, deliveries);
            }
            int rest = 0;
            try (KafkaShareConsumer<String, String> consumer = consumer(arguments[0], parts)) {
                long deadline = System.nanoTime() + SHORT.toNanos();
                while (System.nanoTime() < deadline) {
                    rest += consumer.poll(Duration.ofMillis(200)).count();
                }
            }
            System.out.println(String.join("\t", parts[0], deliveries.toString(), Integer.toString(rest)));
        }
    }

    private static void produce(String servers, String topic, int count) throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "linger.ms", "5", "batch.size", "200"));
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, "value-" + i));
            }
        }
    }

    private static KafkaShareConsumer<String, String> consumer(String servers, String[] parts) {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "group.id", parts[1]));
        if (parts[2].equals("record_limit")) {
            config.putAll(Map.of("share.acquire.mode", "record_limit", "max.poll.records", "1"));
        } else {
            config.put("share.acknowledgement.mode", parts[2]);
        }
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(parts[0]));
        return consumer;
    }

    private static void consume(KafkaShareConsumer<String, String> consumer, String mode, int count,
            Map<Long, List<Short>> deliveries) {
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        int done = 0;
        while (done < count && System.nanoTime() < deadline) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                if (!record.value().equals("value-" + record.offset())) {
                    throw new IllegalStateException(record.toString());
                }
                deliveries.computeIfAbsent(record.offset(), offset -> new ArrayList<>())
                    .add(record.deliveryCount().get());
                if (!mode.equals("explicit") || isDone(consumer, record)) {
                    done++;
                }
            }
            consumer.commitSync().forEach((partition, error) -> error.ifPresent(e -> {
                throw e;
            }));
        }
    }

    private static boolean isDone(KafkaShareConsumer<String, String> consumer, ConsumerRecord<String, String> record) {
        if (record.offset() % 5 == 0) {
            consumer.acknowledge(record, AcknowledgeType.REJECT);
        } else if (record.offset() % 3 == 0 && record.deliveryCount().get() == 1) {
            consumer.acknowledge(record, AcknowledgeType.RELEASE);
            return false;
        } else {
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
        }
        return true;
    }
}
