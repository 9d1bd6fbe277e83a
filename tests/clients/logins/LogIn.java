import java.io.FileReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends one record with each of the property files, and prints the topic that it went to. */
public class LogIn {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = new Properties();
            try (FileReader reader = new FileReader(file)) {
                properties.load(reader);
            }
            properties.put("max.block.ms", "30000");
            try (KafkaProducer<String, String> producer =
                    new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
                System.out.println(producer.send(new ProducerRecord<>("t", "java")).get().topic());
            }
        }
    }
}
