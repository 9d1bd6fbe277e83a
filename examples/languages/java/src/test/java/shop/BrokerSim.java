package shop;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.*;

/** A Kafka cluster that all tests share, as new before each: `broker-sim run`, or that of `broker-sim chaos -- mvn test`. */
public class BrokerSim implements ExtensionContext.Store.CloseableResource {
    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    public final String bootstrapServers;
    private final String control;

    public BrokerSim() throws IOException {
        String given = System.getenv("BROKER_SIM_CONTROL");
        process = given != null ? null : new ProcessBuilder("broker-sim", "run", "--control-port", "0")
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = process == null ? "" : process.inputReader().readLine();
        bootstrapServers = process == null ? System.getenv("KAFKA_BOOTSTRAP_SERVERS") : field(ready, "bootstrap_servers");
        control = process == null ? given : field(ready, "control");
    }

    /** Call a verb of the control port; returns the answer's JSON. */
    public String request(String method, String path, String json) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(control + path)).header("Content-Type", "application/json")
            .method(method, json.isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(json)).build();
        var response = http.send(request, BodyHandlers.ofString());
        if (response.statusCode() != 200) throw new IOException(response.body());
        return response.body();
    }

    public static String field(String json, String name) {
        var match = Pattern.compile("\"" + name + "\": \"?([^\"}]*?)[\",}]").matcher(json);
        if (!match.find()) throw new IllegalArgumentException("no " + name + " in " + json);
        return match.group(1);
    }

    @Override public void close() {
        if (process != null) process.destroy();
    }

    /** `@ExtendWith(BrokerSim.Each.class)` gives a test its parameter of type BrokerSim. */
    public static class Each implements BeforeEachCallback, ParameterResolver {
        @Override public void beforeEach(ExtensionContext context) throws Exception {
            if (shared(context).process != null) shared(context).request("POST", "/reset", "");
        }

        @Override public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
            return parameter.getParameter().getType() == BrokerSim.class;
        }

        @Override public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
            return shared(context);
        }

        private static BrokerSim shared(ExtensionContext context) {
            return context.getRoot().getStore(ExtensionContext.Namespace.GLOBAL).getOrComputeIfAbsent(BrokerSim.class);
        }
    }
}
