import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A program of Kafka's Java client: 20 records through a group, then an idle minute. */
public final class IdleMinute {
    public static void main(String[] protocol) throws Exception {
        String servers = System.getenv("KAFKA_BOOTSTRAP_SERVERS");
        Map<String, Object> forProducer = Map.of("bootstrap.servers", servers, "acks", "all");
        try (var producer = new KafkaProducer<>(forProducer, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 20; number++) {
                producer.send(new ProducerRecord<>("orders", "" + number)).get();
            }
        }
        Map<String, Object> forConsumer = Map.of("bootstrap.servers", servers, "group.id", "shop",
            "auto.offset.reset", "earliest", "group.protocol", protocol[0]);
        try (var consumer = new KafkaConsumer<>(forConsumer, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            int count = 0;
            while (count < 20) {
                count += consumer.poll(Duration.ofSeconds(1)).count();
            }
            long start = System.nanoTime();
            consumer.poll(Duration.ofSeconds(60));
            System.out.println("20 records, " + Math.round((System.nanoTime() - start) / 1e9) + " s idle");
        }
    }
}
