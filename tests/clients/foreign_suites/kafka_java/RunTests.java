package org.apache.kafka.common.test.junit;

import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Runs the test classes, or methods of the form Class#method, that stdin names line by line. Prints a line per test:
 * verdict, test, milliseconds and the error, with tabs between; and END after each line of stdin.
 */
public final class RunTests implements TestExecutionListener {
    private static final int ERROR_CHARACTERS = 2000;
    private static final int FRAMES = 6;
    private static final String TIMEOUT = "150 s";

    private final PrintStream out;
    private final Map<String, Long> begun = new HashMap<>();

    private RunTests(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] none) throws IOException {
        PrintStream out = System.out;
        // What a test prints is no verdict.
        System.setOut(System.err);
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        for (String name = names.readLine(); name != null; name = names.readLine()) {
            LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(name.contains("#") ? DiscoverySelectors.selectMethod(name) : DiscoverySelectors.selectClass(name))
                .configurationParameter("junit.jupiter.execution.timeout.testtemplate.method.default", TIMEOUT)
                .build();
            LauncherFactory.create().execute(request, new RunTests(out));
            out.println("END");
            out.flush();
        }
        // Threads that a test left behind end here.
        Runtime.getRuntime().halt(0);
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        begun.put(test.getUniqueId(), System.nanoTime());
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        print("SKIPPED", test, 0, reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        long elapsedMs = (System.nanoTime() - begun.remove(test.getUniqueId())) / 1_000_000;
        if (test.isTest() || result.getStatus() != TestExecutionResult.Status.SUCCESSFUL)
            print(result.getStatus().name(), test, elapsedMs, result.getThrowable().map(RunTests::text).orElse(""));
    }

    private void print(String verdict, TestIdentifier test, long elapsedMs, String text) {
        out.println(String.join("\t", verdict, name(test), String.valueOf(elapsedMs), text));
        out.flush();
    }

    /** Returns Class.method, and with several runs of the method the number of this one. */
    private static String name(TestIdentifier test) {
        String number = UniqueId.parse(test.getUniqueId()).getLastSegment().getValue();
        String suffix = number.startsWith("#") ? number : "";
        return test.getSource()
            .map(source -> source instanceof MethodSource method
                ? method.getClassName() + "." + method.getMethodName() + suffix : test.getLegacyReportingName())
            .orElse(test.getLegacyReportingName());
    }

    private static String text(Throwable error) {
        StringBuilder text = new StringBuilder(String.valueOf(error));
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause())
            text.append(" | ").append(cause);
        String line = text.toString().replaceAll("\\s+", " ");
        StringBuilder places = new StringBuilder();
        Arrays.stream(error.getStackTrace()).filter(frame -> frame.getClassName().contains("kafka"))
            .limit(FRAMES).forEach(frame -> places.append(" @").append(frame.getFileName()).append(':').append(frame.getLineNumber()));
        return line.substring(0, Math.min(line.length(), ERROR_CHARACTERS)) + places;
    }
}
