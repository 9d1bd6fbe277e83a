package shop;

import static org.junit.jupiter.api.Assertions.*;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What must hold in the end, whatever happens to brokers meanwhile. */
@ExtendWith(BrokerSim.Each.class)
class DeliveryTest {
    @Test void everyOrderIsDelivered(BrokerSim kafka) {
        var servers = Map.<String, Object>of("bootstrap.servers", kafka.bootstrapServers);
        try (var producer = new KafkaProducer<>(servers, new StringSerializer(), new StringSerializer())) {
            for (int order = 0; order < 20; order++) producer.send(new ProducerRecord<>("orders", "order " + order));
        }
        var configs = new java.util.HashMap<>(servers);
        configs.putAll(Map.of("group.id", "shop", "auto.offset.reset", "earliest"));
        var orders = new HashSet<String>();
        try (var consumer = new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            while (orders.size() < 20 && System.nanoTime() < end)
                for (var record : consumer.poll(Duration.ofSeconds(1))) orders.add(record.value());
        }
        assertEquals(20, orders.size());
    }
}
