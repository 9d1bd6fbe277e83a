import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.common.TopicPartition;

/** What members of all kinds tell and are told: lines of JSON on stdout, a line on stdin to leave. */
final class Telling implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    static synchronized void tell(String text) {
        System.out.println(text);
        System.out.flush();
    }

    static AtomicBoolean whenToldToLeave() {
        AtomicBoolean left = new AtomicBoolean();
        Thread listener = new Thread(() -> {
            try {
                System.in.read();
            } catch (Exception ended) {
                // The test has ended.
            }
            left.set(true);
        });
        listener.setDaemon(true);
        listener.start();
        return left;
    }

    /** Configurations of a consumer: servers, group, topic, session and heartbeat in ms, strategy. */
    static Properties consumerConfigs(String[] arguments) {
        String strategy = arguments[5];
        Properties configs = new Properties();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("group.id", arguments[1]);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", "false");
        if (strategy.equals("consumer")) {
            configs.put("group.protocol", "consumer");
        } else {
            configs.put("session.timeout.ms", arguments[3]);
            configs.put("heartbeat.interval.ms", arguments[4]);
            configs.put("partition.assignment.strategy", ASSIGNORS.get(strategy));
        }
        return configs;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        tellPartitions("revoked", partitions);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tellPartitions("assigned", partitions);
    }

    private static void tellPartitions(String event, Collection<TopicPartition> partitions) {
        String numbers = partitions.stream().map(one -> "" + one.partition())
            .sorted().collect(Collectors.joining(","));
        tell("{\"event\":\"" + event + "\",\"partitions\":[" + numbers + "]}");
    }
}
