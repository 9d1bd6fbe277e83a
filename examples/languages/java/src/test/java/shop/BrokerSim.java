package shop;

import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.*;
import org.junit.jupiter.api.extension.support.TypeBasedParameterResolver;

/** A Kafka cluster that all tests share, as new before each: `broker-sim run`, or that of `broker-sim chaos -- mvn test`. */
public class BrokerSim implements ExtensionContext.Store.CloseableResource {
    private final Process process;
    public final String bootstrapServers, control;

    public BrokerSim() throws IOException {
        boolean isGiven = System.getenv("KAFKA_BOOTSTRAP_SERVERS") != null;
        process = isGiven ? null : new ProcessBuilder("broker-sim", "run", "--until-stdin-closes")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = isGiven ? "" : process.inputReader().readLine();
        bootstrapServers = isGiven ? System.getenv("KAFKA_BOOTSTRAP_SERVERS") : field(ready, "bootstrap_servers");
        control = isGiven ? System.getenv("BROKER_SIM_CONTROL") : field(ready, "control");
    }

    /** Call a verb of the control port; returns the answer's JSON. */
    public String request(String method, String path, String json) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(control + path)).header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(json)).build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) throw new IOException(response.body());
        return response.body();
    }

    public static String field(String json, String name) {
        var match = Pattern.compile("\"" + name + "\": \"?([^\"}]*?)[\",}]").matcher(json);
        if (!match.find()) throw new IllegalArgumentException("no " + name + " in " + json);
        return match.group(1);
    }

    @Override public void close() { if (process != null) process.destroy(); }

    /** `@ExtendWith(BrokerSim.Each.class)` gives a test its parameter of type BrokerSim. */
    public static class Each extends TypeBasedParameterResolver<BrokerSim> implements BeforeEachCallback {
        @Override public void beforeEach(ExtensionContext context) throws Exception {
            var kafka = resolveParameter(null, context);
            if (kafka.process != null) kafka.request("POST", "/reset", "");
        }

        @Override public BrokerSim resolveParameter(ParameterContext parameter, ExtensionContext context) {
            return context.getRoot().getStore(ExtensionContext.Namespace.GLOBAL).getOrComputeIfAbsent(BrokerSim.class);
        }
    }
}
