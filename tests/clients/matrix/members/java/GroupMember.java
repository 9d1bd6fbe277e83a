// A member of a group by Kafka's Java consumer; see ../../conftest.py for what it is told and tells.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class GroupMember {
    public static void main(String[] arguments) {
        var left = Telling.whenToldToLeave();
        var bytes = new ByteArrayDeserializer();
        var configs = Telling.consumerConfigs(arguments);
        try (var consumer = new KafkaConsumer<>(configs, bytes, bytes)) {
            consumer.subscribe(List.of(arguments[2]), new Telling());
            while (!left.get()) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    String where = "\"partition\":" + record.partition() + ",\"offset\":";
                    Telling.tell("{\"event\":\"record\"," + where + record.offset() + "}");
                    var partition = new TopicPartition(record.topic(), record.partition());
                    consumer.commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1)));
                    Telling.tell("{\"event\":\"committed\"," + where + (record.offset() + 1) + "}");
                }
            }
        }
        Telling.tell("{\"event\":\"left\"}");
    }
}
