package org.apache.kafka.common.test.junit;

import org.apache.kafka.common.test.api.ClusterConfig;

import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

import java.util.List;

/**
 * Stands before Kafka's class of the same name on the class path: each test of its cluster tests runs against
 * a cluster of `broker-sim` in place of brokers in this JVM.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    /** The test that expects the first producer id of a cluster, which brokers that are reset do not give again. */
    private static final String NEEDS_NEW_BROKERS = "testTransactionLogMessageFormatter";
    private final String baseDisplayName;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String baseDisplayName, ClusterConfig config, boolean isCombined) {
        this.baseDisplayName = baseDisplayName;
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int invocationIndex) {
        return baseDisplayName + " [" + invocationIndex + "] " + (isCombined ? "Combined" : "Isolated");
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        SimulatedCluster cluster = new SimulatedCluster(config, isCombined);
        return List.of(
            (BeforeEachCallback) context -> {
                if (baseDisplayName.contains(NEEDS_NEW_BROKERS))
                    SimulatedBrokers.endSpare();
                if (config.isAutoStart())
                    cluster.start();
            },
            (AfterTestExecutionCallback) context -> cluster.stop(),
            new ClusterInstanceParameterResolver(cluster)
        );
    }
}
