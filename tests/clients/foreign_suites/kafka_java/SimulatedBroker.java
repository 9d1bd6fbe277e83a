package org.apache.kafka.common.test.junit;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.ConnectionQuotas;
import kafka.network.SocketServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;

import com.fasterxml.jackson.databind.JsonNode;
import com.yammer.metrics.core.Meter;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.StreamSupport;

import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;

import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;

/**
 * A broker as a test sees it that reaches into its JVM: what the cluster's status shows of it can be read; all else
 * throws {@link InAnotherProcess}, which no wait of a test catches.
 */
final class SimulatedBroker {
    private SimulatedBroker() { }

    /** Thrown where a test reads what only a broker in its own JVM has. */
    static final class InAnotherProcess extends Error {
        InAnotherProcess(String what) {
            super("the broker is another process: its " + what + " cannot be read");
        }
    }

    static KafkaBroker of(SimulatedCluster cluster, int id) {
        return implement(KafkaBroker.class, (proxy, method, arguments) -> switch (method.getName()) {
            case "isShutdown" -> !cluster.isRunning(id);
            case "brokerState" -> cluster.isRunning(id) ? BrokerState.RUNNING : BrokerState.SHUTTING_DOWN;
            case "clusterId" -> cluster.clusterId();
            case "config" -> config(cluster, id);
            case "boundPort" -> cluster.port(id);
            case "socketServer" -> mock(SocketServer.class, Map.of(
                "boundPort", call -> cluster.port(id),
                "connectionQuotas", call -> mock(ConnectionQuotas.class, "connectionRateForIp",
                    quota -> cluster.connectionRate(quota.<InetAddress>getArgument(0).getHostAddress()))));
            case "dataPlaneRequestProcessor" -> mock(KafkaApis.class, "brokerId", call -> id);
            case "metadataCache" -> metadataCache(cluster);
            case "logManager" -> mock(LogManager.class, Map.of(
                "getLog", call -> OptionConverters.toScala(replica(cluster, id, call).map(SimulatedBroker::log)),
                "getLog$default$2", call -> false,
                // Brokers in memory have no files.
                "liveLogDirs", call -> CollectionConverters.asScala(List.<File>of()).toSeq(),
                "initialDefaultConfig", call -> new LogConfig(config(cluster, id).extractLogConfigMap()),
                "producerStateManagerConfig", call -> producerConfig(config(cluster, id))));
            case "replicaManager" -> mock(ReplicaManager.class, Map.of(
                "metadataCache", call -> metadataCache(cluster),
                "onlinePartition",
                call -> OptionConverters.toScala(replica(cluster, id, call).map(status -> partition(cluster, id, call))),
                "localLog",
                call -> OptionConverters.toScala(replica(cluster, id, call).map(SimulatedBroker::log))));
            case "groupCoordinator" -> implement(GroupCoordinator.class, (coordinator, query, none) -> switch (query.getName()) {
                case "groupMetadataTopicConfigs" -> groupMetadataTopicConfigs();
                default -> throw new InAnotherProcess("groupCoordinator." + query.getName());
            });
            case "shutdown" -> {
                if (cluster.isRunning(id))
                    cluster.shutdownBroker(id);
                yield null;
            }
            case "awaitShutdown" -> null;
            case "startup" -> {
                cluster.startBroker(id);
                yield null;
            }
            case "hashCode" -> id;
            case "equals" -> proxy == arguments[0];
            case "toString" -> "broker " + id;
            default -> throw new InAnotherProcess(method.getName());
        });
    }

    /** Returns the status of the broker's replica of the call's partition. */
    private static Optional<JsonNode> replica(SimulatedCluster cluster, int id, InvocationOnMock call) {
        TopicPartition partition = call.getArgument(0);
        return Optional.ofNullable(cluster.topic(partition.topic()))
            .map(topic -> topic.get("partitions").get(partition.partition()))
            .flatMap(status -> StreamSupport.stream(status.get("replicas").spliterator(), false)
                .filter(replica -> replica.get("broker").asInt() == id).findFirst());
    }

    private static UnifiedLog log(JsonNode replica) {
        return mock(UnifiedLog.class, Map.of(
            "logEndOffset", call -> replica.get("log_end_offset").asLong(),
            "highWatermark", call -> replica.get("high_watermark").asLong()));
    }

    static ControllerServer controllerOf(SimulatedCluster cluster) {
        Controller controller = implement(Controller.class, (proxy, method, arguments) -> switch (method.getName()) {
            case "findAllTopicIds" -> CompletableFuture.completedFuture(cluster.topicIds());
            default -> throw new InAnotherProcess("controller." + method.getName());
        });
        return mock(ControllerServer.class, "controller", call -> controller);
    }

    /** Puts the meters of acknowledged records where a broker in this JVM would have them. */
    static void addMeters(SimulatedCluster cluster) throws ReflectiveOperationException {
        Method add = MetricsRegistry.class.getDeclaredMethod("getOrAdd", MetricName.class, Metric.class);
        add.setAccessible(true);
        for (String type : List.of("Accept", "Release", "Reject", "Renew")) {
            MetricName name = new MetricName("kafka.server", "ShareGroupMetrics", "RecordAcknowledgementsPerSec", null,
                "kafka.server:type=ShareGroupMetrics,name=RecordAcknowledgementsPerSec,ackType=" + type);
            // These brokers may have counted for the test before.
            long before = cluster.acknowledged(type);
            Meter meter = mock(Meter.class, Map.of(
                "count", call -> cluster.acknowledged(type) - before,
                // The registry's reporters visit a new metric, and a removed one is stopped.
                "processWith", call -> null,
                "stop", call -> null));
            KafkaYammerMetrics.defaultRegistry().removeMetric(name);
            add.invoke(KafkaYammerMetrics.defaultRegistry(), name, meter);
        }
    }

    private static Partition partition(SimulatedCluster cluster, int id, InvocationOnMock of) {
        TopicPartition name = of.getArgument(0);
        Supplier<Optional<Integer>> leaderHere = () -> Optional.ofNullable(cluster.topic(name.topic()))
            .map(topic -> leaderAndIsr(topic.get("partitions").get(name.partition())).leader())
            .filter(leader -> leader == id);
        return mock(Partition.class, Map.of(
            "leaderIdIfLocal", call -> OptionConverters.toScala(leaderHere.get()),
            "leaderLogIfLocal", call -> OptionConverters.toScala(
                leaderHere.get().flatMap(leader -> replica(cluster, id, of)).map(SimulatedBroker::log))));
    }

    private static ProducerStateManagerConfig producerConfig(KafkaConfig config) {
        return new ProducerStateManagerConfig(config.getInt("producer.id.expiration.ms"), true);
    }

    private static <T> T mock(Class<T> kind, String name, Answer<?> answer) {
        return mock(kind, Map.of(name, answer));
    }

    /** Returns an object of a class with the named methods; all others throw. */
    private static <T> T mock(Class<T> kind, Map<String, Answer<?>> answers) {
        return Mockito.mock(kind, call -> {
            String method = call.getMethod().getName();
            if (answers.containsKey(method))
                return answers.get(method).answer(call);
            if (method.equals("toString"))
                return kind.getSimpleName();
            throw new InAnotherProcess(kind.getSimpleName() + "." + method);
        });
    }

    private static KafkaConfig config(SimulatedCluster cluster, int id) {
        Map<String, String> properties = new HashMap<>(cluster.config().serverProperties());
        properties.putAll(cluster.config().perServerOverrideProperties().getOrDefault(id, Map.of()));
        properties.putAll(cluster.dynamicConfigs(id));
        properties.putIfAbsent("listeners", cluster.clientListener().value() + "://127.0.0.1:" + cluster.port(id));
        properties.putIfAbsent("listener.security.protocol.map",
            cluster.clientListener().value() + ":" + cluster.config().brokerSecurityProtocol() + ",CONTROLLER:PLAINTEXT");
        properties.putIfAbsent("inter.broker.listener.name", cluster.clientListener().value());
        properties.putIfAbsent("controller.listener.names", "CONTROLLER");
        properties.putIfAbsent("controller.quorum.bootstrap.servers", "127.0.0.1:1");
        properties.putIfAbsent("process.roles", "broker");
        properties.putIfAbsent("node.id", String.valueOf(id));
        return new KafkaConfig(properties, false);
    }

    /** Returns the configurations of `__consumer_offsets`, which tests create themselves. */
    private static Properties groupMetadataTopicConfigs() {
        Properties properties = new Properties();
        properties.putAll(Map.of("cleanup.policy", "compact", "compression.type", "producer", "segment.bytes", "104857600"));
        return properties;
    }

    private static MetadataCache metadataCache(SimulatedCluster cluster) {
        return implement(MetadataCache.class, (proxy, method, arguments) -> switch (method.getName()) {
            case "numPartitions" -> Optional.ofNullable(cluster.topic((String) arguments[0]))
                .map(topic -> topic.get("partitions").size());
            case "getLeaderAndIsr" -> Optional.ofNullable(cluster.topic((String) arguments[0]))
                .map(topic -> topic.get("partitions").get((Integer) arguments[1]))
                .map(SimulatedBroker::leaderAndIsr);
            case "getAliveBrokerNodes" -> cluster.brokerIds().stream().filter(cluster::isRunning)
                .map(id -> new Node(id, "127.0.0.1", cluster.port(id))).toList();
            default -> throw new InAnotherProcess("metadataCache." + method.getName());
        });
    }

    private static LeaderAndIsr leaderAndIsr(JsonNode partition) {
        List<Integer> isr = new ArrayList<>();
        partition.get("isr").forEach(member -> isr.add(member.asInt()));
        int leader = partition.get("leader").isNull() ? -1 : partition.get("leader").asInt();
        return new LeaderAndIsr(leader, isr);
    }

    private static <T> T implement(Class<T> kind, InvocationHandler handler) {
        return kind.cast(Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, handler));
    }
}
