import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Produces to and consumes from partition 0 of some topics with Kafka's own clients.
 *
 * <p>Arguments: bootstrap servers, number of records, and per case a text
 * TOPIC,ACKS,COMPRESSION,IDEMPOTENCE. Prints per case one line with tabs: the topic, the offsets
 * that the producer was told, those that the consumer saw, the consumer's values.
 */
public final class ProduceConsume {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[1]);
        for (String text : List.of(arguments).subList(2, arguments.length)) {
            String[] parts = text.split(",");
            String told = produce(arguments[0], parts, count);
            List<ConsumerRecord<String, String>> records = consume(arguments[0], parts[0], count);
            System.out.println(String.join("\t", parts[0], told,
                join(records.stream().map(record -> Long.toString(record.offset())).toList()),
                join(records.stream().map(ConsumerRecord::value).toList())));
        }
    }

    private static String produce(String servers, String[] parts, int count) throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "acks", parts[1],
            "compression.type", parts[2], "enable.idempotence", parts[3], "linger.ms", "5"));
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = IntStream.range(0, count)
                .mapToObj(i -> producer.send(new ProducerRecord<>(parts[0], 0, null, "value-" + i)))
                .collect(Collectors.toList());
            StringBuilder offsets = new StringBuilder();
            for (Future<RecordMetadata> future : sent) {
                offsets.append(offsets.isEmpty() ? "" : ",").append(future.get().offset());
            }
            return offsets.toString();
        }
    }

    private static List<ConsumerRecord<String, String>> consume(
            String servers, String topic, int count) {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "enable.auto.commit", "false"));
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            List<ConsumerRecord<String, String>> records = new ArrayList<>();
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (records.size() < count && System.nanoTime() < deadline) {
                records.addAll(consumer.poll(Duration.ofMillis(200)).records(partition));
            }
            return records;
        }
    }

    private static String join(List<String> texts) {
        return String.join(",", texts);
    }
}
