import org.apache.kafka.common.protocol.Errors;

/** Prints every error of Kafka's protocol, one a line: code, name, message. */
public class ErrorFacts {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.println(String.join("\t", String.valueOf(error.code()), error.name(), error.message()));
        }
    }
}
