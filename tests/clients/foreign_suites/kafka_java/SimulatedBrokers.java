package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** One `broker-sim run` process: started with options, spoken to over its control port, ended by closing its stdin. */
final class SimulatedBrokers implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long END_TIMEOUT_S = 60;

    private static SimulatedBrokers spare;
    private final List<String> options;
    private final Process process;
    private final String control;
    final List<String> bootstrapServers;
    /** The brokers' addresses that lead to the controller. */
    final List<String> bootstrapControllers;

    /** Returns brokers with these options: those of the test before, reset, if theirs are the same. */
    static SimulatedBrokers take(List<String> options, String controllerListener) throws IOException {
        SimulatedBrokers former = spare;
        spare = null;
        if (former != null && former.options.equals(options))
            return former;
        if (former != null)
            former.close();
        return new SimulatedBrokers(options, controllerListener);
    }

    /** Ends the brokers that the test before has left, so that the next test gets new ones. */
    static void endSpare() {
        if (spare != null)
            spare.close();
        spare = null;
    }

    /** Resets the brokers and keeps them for the next test. */
    void release() {
        request("POST", "/reset", "");
        // A reset leaves Kafka's own topics where they are; a test begins without them.
        for (JsonNode topic : status().get("topics"))
            request("DELETE", "/topics/" + topic.get("name").asText(), "");
        if (spare != null && spare != this)
            spare.close();
        spare = this;
    }

    private SimulatedBrokers(List<String> options, String controllerListener) throws IOException {
        this.options = options;
        List<String> command = new ArrayList<>(Arrays.asList(System.getProperty("broker.sim.command").split("\t")));
        command.addAll(options);
        process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String ready = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        if (ready == null)
            throw new IOException("no ready line from " + command);
        JsonNode fields = JSON.readTree(ready);
        control = fields.get("control").asText();
        bootstrapServers = List.of(fields.get("bootstrap_servers").asText().split(","));
        bootstrapControllers = List.of(fields.get("listeners").get(controllerListener).asText().split(","));
    }

    /** Returns the sum of a metric's samples whose labels have this text. */
    long metric(String name, String label) {
        String text = new String(send("GET", "/metrics", ""), StandardCharsets.UTF_8);
        return text.lines().filter(line -> line.startsWith(name + "{") && line.contains(label))
            .mapToLong(line -> (long) Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1))).sum();
    }

    JsonNode request(String method, String path, String body) {
        try {
            return JSON.readTree(send(method, path, body));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Sends a verb to the control port; returns the answer. Throws IOException if it is refused. */
    private byte[] send(String method, String path, String body) {
        try {
            HttpURLConnection connection = (HttpURLConnection) URI.create(control + path).toURL().openConnection();
            connection.setRequestMethod(method);
            connection.setRequestProperty("Content-Type", "application/json");
            // Connections that are kept alive have a thread, which tests take for one of theirs.
            connection.setRequestProperty("Connection", "close");
            if (!method.equals("GET")) {
                connection.setDoOutput(true);
                connection.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
            }
            if (connection.getResponseCode() != HttpURLConnection.HTTP_OK)
                throw new IOException(method + " " + path + ": " + new String(connection.getErrorStream().readAllBytes()));
            return connection.getInputStream().readAllBytes();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    JsonNode status() {
        return request("GET", "/status", "");
    }

    @Override
    public void close() {
        try {
            process.getOutputStream().close();
            if (!process.waitFor(END_TIMEOUT_S, TimeUnit.SECONDS))
                process.destroyForcibly();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
