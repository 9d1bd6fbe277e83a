import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consumes partition 0 of a topic with Kafka's own share consumer.
 *
 * <p>Arguments: bootstrap servers, topic, group, number of records, and the case. All cases but "killed" produce the
 * records first. Prints one line with tabs: the deliveries of each offset, and what else the case has seen.
 *
 * <ul>
 *   <li>implicit, explicit: how it acknowledges. An explicit one releases each third record when it comes the first
 *       time, rejects each fifth, and accepts all others.
 *   <li>record_limit: it takes one record at a time.
 *   <li>renew: it has the records for longer than their locks, which it renews.
 *   <li>committed: every other transaction is aborted, and the group reads what was committed.
 *   <li>shared: two consumers take turns.
 *   <li>stuck: one consumer never acknowledges, and another one gets the records when their locks are over.
 *   <li>hold: says "held" when it has the records, and does nothing any more.
 *   <li>killed: gets the records that "hold" had.
 * </ul>
 *
 * <p>Where it says so, the last word is what a further consumer of the group gets.
 */
public final class ShareConsume {
    private static final Duration TIMEOUT = Duration.ofSeconds(90);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration HELD = Duration.ofSeconds(7);
    private static final int FEW = 5;

    private final String servers;
    private final String topic;
    private final String group;
    private final int count;
    private final Map<Long, List<Short>> deliveries = new TreeMap<>();
    private final long deadline = System.nanoTime() + TIMEOUT.toNanos();

    private ShareConsume(String servers, String topic, String group, int count) {
        this.servers = servers;
        this.topic = topic;
        this.group = group;
        this.count = count;
    }

    public static void main(String[] arguments) throws Exception {
        ShareConsume program =
            new ShareConsume(arguments[0], arguments[1], arguments[2], Integer.parseInt(arguments[3]));
        Object seen = program.run(arguments[4]);
        System.out.println(program.deliveries + "\t" + seen);
        System.out.flush();
    }

    private Object run(String mode) throws Exception {
        if (mode.equals("committed")) {
            produceInTransactions();
        } else if (!mode.equals("killed")) {
            produce();
        }
        return switch (mode) {
            case "implicit", "explicit" -> consume(mode, Map.of());
            case "record_limit" ->
                consume("implicit", Map.of("share.acquire.mode", "record_limit", "max.poll.records", "1"));
            case "committed", "killed" -> consume("implicit", Map.of());
            case "renew" -> renew();
            case "shared" -> shared();
            case "stuck" -> stuck();
            case "hold" -> hold();
            default -> throw new IllegalArgumentException(mode);
        };
    }

    // -- producing --------------------------------------------------------------------------------

    private KafkaProducer<String, String> producer(Map<String, String> more) {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "linger.ms", "5", "batch.size", "200"));
        config.putAll(more);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private void produce() {
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, "value-" + i));
            }
        }
    }

    /** Each transaction has a few records, and its marker takes an offset. */
    private void produceInTransactions() {
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", topic))) {
            producer.initTransactions();
            for (int offset = 0, done = 0; done < count; offset++) {
                producer.beginTransaction();
                boolean isAborted = offset / (FEW + 1) % 2 == 1;
                for (int i = 0; i < FEW; i++, offset++) {
                    producer.send(new ProducerRecord<>(topic, 0, null, "value-" + offset));
                }
                if (isAborted) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    done += FEW;
                }
            }
        }
    }

    // -- consuming --------------------------------------------------------------------------------

    private KafkaShareConsumer<String, String> consumer(String acknowledgement, Map<String, String> more) {
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "group.id", group));
        config.put("share.acknowledgement.mode", acknowledgement);
        config.putAll(more);
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private boolean isInTime() {
        return System.nanoTime() < deadline;
    }

    private List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
            if (!record.value().equals("value-" + record.offset())) {
                throw new IllegalStateException(record.toString());
            }
            records.add(record);
        }
        return records;
    }

    private void delivered(ConsumerRecord<String, String> record) {
        deliveries.computeIfAbsent(record.offset(), offset -> new ArrayList<>()).add(record.deliveryCount().get());
    }

    private static void commit(KafkaShareConsumer<String, String> consumer) {
        consumer.commitSync().forEach((partition, error) -> error.ifPresent(e -> {
            throw e;
        }));
    }

    private int consume(String acknowledgement, Map<String, String> config) {
        try (KafkaShareConsumer<String, String> consumer = consumer(acknowledgement, config)) {
            for (int done = 0; done < count && isInTime();) {
                for (ConsumerRecord<String, String> record : poll(consumer)) {
                    delivered(record);
                    if (acknowledgement.equals("implicit") || isDone(consumer, record)) {
                        done++;
                    }
                }
                commit(consumer);
            }
        }
        return countOfFurther();
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

    /** Produces a last record; all that was there before it and is not done comes with it. */
    private int countOfFurther() {
        int rest = 0;
        try (KafkaShareConsumer<String, String> consumer = consumer("implicit", Map.of());
                KafkaProducer<String, String> producer = producer(Map.of())) {
            producer.send(new ProducerRecord<>(topic, 0, null, "last"));
            producer.flush();
            while (isInTime()) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    if (record.value().equals("last")) {
                        return rest;
                    }
                    rest++;
                }
            }
        }
        throw new IllegalStateException("the last record did not come");
    }

    /** Takes all records and keeps them. */
    private Map<Long, ConsumerRecord<String, String>> take(KafkaShareConsumer<String, String> consumer) {
        Map<Long, ConsumerRecord<String, String>> taken = new TreeMap<>();
        while (taken.size() < count && isInTime()) {
            for (ConsumerRecord<String, String> record : poll(consumer)) {
                delivered(record);
                taken.put(record.offset(), record);
            }
        }
        return taken;
    }

    private int renew() {
        Set<Long> renewed = new TreeSet<>();
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit", Map.of());
                KafkaShareConsumer<String, String> other = consumer("explicit", Map.of())) {
            Map<Long, ConsumerRecord<String, String>> taken = take(consumer);
            long end = System.nanoTime() + HELD.toNanos();
            while (System.nanoTime() < end) {
                taken.values().forEach(record -> consumer.acknowledge(record, AcknowledgeType.RENEW));
                commit(consumer);
                poll(other).forEach(this::delivered);
                // What was renewed is polled again, and it is the same delivery.
                taken = new TreeMap<>();
                while (taken.size() < count && isInTime()) {
                    for (ConsumerRecord<String, String> record : poll(consumer)) {
                        taken.put(record.offset(), record);
                        renewed.add(record.offset() + (record.deliveryCount().get() - 1) * 1_000_000L);
                    }
                }
            }
            taken.values().forEach(record -> consumer.acknowledge(record, AcknowledgeType.ACCEPT));
            commit(consumer);
        }
        if (renewed.size() != count) {
            throw new IllegalStateException("renewed: " + renewed);
        }
        return countOfFurther();
    }

    private String shared() {
        Map<String, String> few = Map.of("max.poll.records", Integer.toString(FEW));
        Map<Integer, Integer> counts = new HashMap<>();
        try (KafkaShareConsumer<String, String> one = consumer("implicit", few);
                KafkaShareConsumer<String, String> other = consumer("implicit", few)) {
            while (deliveries.size() < count && isInTime()) {
                List<KafkaShareConsumer<String, String>> consumers = List.of(one, other);
                for (int i = 0; i < consumers.size(); i++) {
                    for (ConsumerRecord<String, String> record : poll(consumers.get(i))) {
                        delivered(record);
                        counts.merge(i, 1, Integer::sum);
                    }
                    commit(consumers.get(i));
                }
            }
        }
        return counts.size() + " consumers, " + countOfFurther();
    }

    private Object stuck() {
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit", Map.of());
                KafkaShareConsumer<String, String> other = consumer("implicit", Map.of())) {
            Map<Long, ConsumerRecord<String, String>> taken = take(consumer);
            for (int done = 0; done < count && isInTime();) {
                for (ConsumerRecord<String, String> record : poll(other)) {
                    delivered(record);
                    done++;
                }
                commit(other);
            }
            taken.values().forEach(record -> consumer.acknowledge(record, AcknowledgeType.ACCEPT));
            return consumer.commitSync().values().stream()
                .map(error -> error.map(e -> e.getClass().getSimpleName()).orElse("accepted")).toList();
        }
    }

    private Object hold() throws Exception {
        try (KafkaShareConsumer<String, String> consumer = consumer("explicit", Map.of())) {
            take(consumer);
            System.out.println("held");
            System.out.flush();
            Thread.sleep(TIMEOUT.toMillis());
        }
        return "not killed";
    }
}
