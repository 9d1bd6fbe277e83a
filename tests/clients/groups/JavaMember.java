import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's own consumer with the consumer protocol, for the tests: see member.py, which it is like. */
public class JavaMember {
  static void tell(String event, String rest) {
    System.out.println("{\"event\": \"" + event + "\"" + rest + "}");
    System.out.flush();
  }

  static String numbers(Collection<TopicPartition> partitions) {
    List<Integer> sorted = partitions.stream().map(TopicPartition::partition).sorted().toList();
    return ", \"partitions\": " + sorted;
  }

  public static void main(String[] arguments) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", arguments[0]);
    settings.put("group.id", arguments[1]);
    settings.put("group.protocol", "consumer");
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", "false");
    settings.put("key.deserializer", StringDeserializer.class.getName());
    settings.put("value.deserializer", StringDeserializer.class.getName());
    if (!arguments[3].isEmpty()) {
      settings.put("group.instance.id", arguments[3]);
    }
    ConcurrentLinkedQueue<String> commands = new ConcurrentLinkedQueue<>();
    Thread reader =
        new Thread(
            () -> {
              try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in))) {
                in.lines().forEach(commands::add);
              } catch (Exception error) {
                throw new IllegalStateException(error);
              }
            });
    reader.setDaemon(true);
    reader.start();
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
      consumer.subscribe(
          List.of(arguments[2]),
          new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
              tell("revoked", numbers(partitions));
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}
          });
      String told = "";
      while (true) {
        var records = consumer.poll(Duration.ofMillis(20));
        String now = numbers(consumer.assignment());
        if (!now.equals(told)) {
          tell("assignment", now);
          told = now;
        }
        records.forEach(record -> tell("value", ", \"value\": \"" + record.value() + "\""));
        String command = commands.poll();
        if ("commit".equals(command)) {
          consumer.commitSync();
          tell("committed", "");
        } else if ("leave".equals(command)) {
          return;
        }
      }
    }
  }
}
