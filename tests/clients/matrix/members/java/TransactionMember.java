// Transforms in transactions by Kafka's Java clients; see ../../transactions/conftest.py.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class TransactionMember {
    private final KafkaConsumer<String, String> consumer;
    private final Properties producing = new Properties();
    private final String sink;
    private final String transactionalId;
    private KafkaProducer<String, String> producer;

    TransactionMember(String[] arguments) {
        sink = arguments[6];
        transactionalId = arguments[7];
        Properties consuming = Telling.consumerConfigs(arguments);
        consuming.put("isolation.level", "read_committed");
        consumer = new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer());
        producing.put("bootstrap.servers", arguments[0]);
        producing.put("transactional.id", transactionalId);
        producing.put("transaction.timeout.ms", arguments[8]);
        startProducer();
        consumer.subscribe(List.of(arguments[2]), new Telling());
    }

    private void startProducer() {
        producer = new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
    }

    public static void main(String[] arguments) throws Exception {
        var left = Telling.whenToldToLeave();
        var member = new TransactionMember(arguments);
        while (!left.get()) {
            var records = member.consumer.poll(Duration.ofMillis(100));
            if (!records.isEmpty()) {
                member.transform(records);
            }
        }
        member.consumer.close();
        member.producer.close();
        Telling.tell("{\"event\":\"left\"}");
    }

    private void transform(ConsumerRecords<String, String> records) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        boolean hold = false;
        try {
            producer.beginTransaction();
            for (ConsumerRecord<String, String> record : records) {
                hold |= record.value().equals("hold " + transactionalId);
                producer.send(new ProducerRecord<>(sink, "done " + record.value()));
                ends.put(new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            if (hold) {
                producer.flush();
                Telling.tell("{\"event\":\"open\"}");
                Thread.currentThread().join();
            }
            producer.commitTransaction();
            Telling.tell("{\"event\":\"committed\",\"records\":" + records.count() + "}");
        } catch (KafkaException failed) {
            try {
                producer.abortTransaction();
            } catch (KafkaException fatal) {
                producer.close(Duration.ZERO);
                startProducer();
            }
            rewind(records);
            Telling.tell("{\"event\":\"aborted\"}");
        }
    }

    private void rewind(ConsumerRecords<String, String> records) {
        for (TopicPartition partition : records.partitions()) {
            if (consumer.assignment().contains(partition)) {
                consumer.seek(partition, records.records(partition).get(0).offset());
            }
        }
    }
}
