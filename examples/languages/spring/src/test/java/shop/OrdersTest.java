package shop;

import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.admin.NewTopic;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.*;
import org.springframework.kafka.config.TopicBuilder;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.test.context.*;

@SpringBootTest(properties = "spring.kafka.consumer.auto-offset-reset=earliest")
class OrdersTest {
    @DynamicPropertySource static void kafka(DynamicPropertyRegistry properties) throws IOException {
        String servers = new BrokerSim().bootstrapServers;
        properties.add("spring.kafka.bootstrap-servers", () -> servers);
    }

    @SpringBootApplication static class Orders {
        static final Set<String> billed = ConcurrentHashMap.newKeySet(), dead = ConcurrentHashMap.newKeySet();

        @Bean NewTopic orders() { return TopicBuilder.name("orders").partitions(3).replicas(3).build(); }

        @RetryableTopic(attempts = "3", replicationFactor = "3")
        @KafkaListener(id = "billing", topics = "orders")
        void bill(String order) {
            if (order.equals("poison")) throw new IllegalStateException("an order that cannot be billed");
            billed.add(order);
        }

        @DltHandler void keep(String order) { dead.add(order); }
    }

    @Autowired KafkaTemplate<Object, Object> kafka;

    @Test void orderThatCannotBeBilledIsADeadLetter() throws Exception {
        kafka.send("orders", "three apples").get();
        kafka.send("orders", "poison").get();
        await().atMost(Duration.ofSeconds(60)).until(() ->
            Orders.billed.equals(Set.of("three apples")) && Orders.dead.equals(Set.of("poison")));
    }
}
