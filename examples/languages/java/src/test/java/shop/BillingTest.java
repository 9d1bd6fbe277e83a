package shop;

import static org.junit.jupiter.api.Assertions.*;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.NotEnoughReplicasException;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(BrokerSim.Each.class)
class BillingTest {
    @Test void orderWaitsForEveryReplica(BrokerSim kafka) throws Exception {
        kafka.request("POST", "/topics", "{\"name\": \"orders\", \"replication_factor\": 3}");
        int leader = Integer.parseInt(BrokerSim.field(kafka.request("GET", "/topics/orders/partitions/0", ""), "leader"));
        int follower = leader % 3 + 1;
        try (var producer = producer(kafka, Map.of())) {
            producer.send(new ProducerRecord<>("orders", "two pears")).get(30, TimeUnit.SECONDS);
            kafka.request("POST", "/brokers/" + follower + "/pause", "");
            Future<RecordMetadata> sent = producer.send(new ProducerRecord<>("orders", "three apples"));
            assertThrows(TimeoutException.class, () -> sent.get(500, TimeUnit.MILLISECONDS));
            kafka.request("POST", "/brokers/" + follower + "/resume", "");
            assertEquals(1, sent.get(30, TimeUnit.SECONDS).offset());
        }
    }

    @Test void refusedOrderIsAnError(BrokerSim kafka) throws Exception {
        kafka.request("POST", "/inject", "{\"api\": \"Produce\", \"error\": \"NOT_ENOUGH_REPLICAS\", \"count\": 1}");
        try (var producer = producer(kafka, Map.of("retries", 0, "enable.idempotence", false))) {
            var sent = producer.send(new ProducerRecord<>("orders", "three apples"));
            var error = assertThrows(ExecutionException.class, () -> sent.get(30, TimeUnit.SECONDS));
            assertInstanceOf(NotEnoughReplicasException.class, error.getCause());
        }
    }

    private static KafkaProducer<String, String> producer(BrokerSim kafka, Map<String, Object> more) {
        var configs = new java.util.HashMap<String, Object>(more);
        configs.put("bootstrap.servers", kafka.bootstrapServers);
        configs.put("acks", "all");
        return new KafkaProducer<>(configs, new StringSerializer(), new StringSerializer());
    }
}
