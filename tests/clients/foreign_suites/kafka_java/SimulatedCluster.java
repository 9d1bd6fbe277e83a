package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;

import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.TestKitDefaults;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What Kafka's cluster tests ask of their cluster, answered by brokers of `broker-sim`. */
final class SimulatedCluster implements ClusterInstance {
    private static final long WAIT_MS = 60_000;
    /** Names that no broker knows, which tests give to brokers: Kafka's ignore them. */
    private static final Set<String> UNKNOWN_TO_BROKERS = Set.of(
        "file.delete.delay.ms", "log.unclean.leader.election.enable", "log.message.timestamp.difference.max.ms");

    private final ClusterConfig config;
    private final boolean isCombined;
    private final Map<Integer, KafkaBroker> brokers = new TreeMap<>();
    private SimulatedBrokers process;
    private boolean stopped;

    SimulatedCluster(ClusterConfig config, boolean isCombined) {
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public void start() {
        if (process != null)
            return;
        try {
            process = SimulatedBrokers.take(options(), config.controllerListenerName().value());
            for (int id : brokerIds())
                brokers.put(id, SimulatedBroker.of(this, id));
            SimulatedBroker.addMeters(this);
        } catch (Exception error) {
            stop();
            throw new IllegalStateException("the cluster does not start", error);
        }
    }

    private List<String> options() {
        List<String> options = new ArrayList<>(List.of(
            "run", "--as-version", "4.3", "--brokers", String.valueOf(config.numBrokers()), "--first-broker-id", "0", "--until-stdin-closes"
        ));
        String listener = clientListener().value();
        SecurityProtocol protocol = config.brokerSecurityProtocol();
        Map<String, String> configs = new TreeMap<>(config.serverProperties());
        // One test gives the description of a configuration in place of its name.
        configs.keySet().removeIf(name -> name.contains(" ") || UNKNOWN_TO_BROKERS.contains(name));
        if (config.numDisksPerBroker() > 1)
            configs.put("log.dirs", IntStream.range(0, config.numDisksPerBroker()).mapToObj(disk -> "/disk-" + disk)
                .collect(Collectors.joining(",")));
        // Kafka's test kit has these too.
        configs.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        configs.putIfAbsent("unstable.api.versions.enable", "true");
        configs.putIfAbsent("unstable.feature.versions.enable", "true");
        // Kafka's kit has new brokers for each test, which end before they look for expired segments. These brokers
        // outlive tests, some of which append records of the year 1970.
        configs.putIfAbsent("log.initial.task.delay.ms", "86400000");
        String controllers = config.controllerListenerName().value();
        configs.putIfAbsent("listener.security.protocol.map",
            listener + ":" + protocol + "," + controllers + ":" + config.controllerSecurityProtocol());
        configs.putIfAbsent("controller.listener.names", controllers);
        configs.putIfAbsent("inter.broker.listener.name", listener);
        options.addAll(List.of("--listeners", listener + "://localhost:0," + controllers + "://localhost:0"));
        if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
            options.addAll(List.of("--user", JaasUtils.KAFKA_PLAIN_ADMIN + "=" + JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD));
            options.addAll(List.of("--user", JaasUtils.KAFKA_PLAIN_USER1 + "=" + JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
            configs.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
            configs.putIfAbsent("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
            configs.putIfAbsent("allow.everyone.if.no.acl.found", "false");
            configs.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        }
        configs.forEach((key, value) -> options.addAll(List.of("--config", key + "=" + value)));
        config.perServerOverrideProperties().forEach((id, own) -> own.forEach((key, value) -> {
            if (brokerIds().contains(id))
                options.addAll(List.of("--broker-config", id + ":" + key + "=" + value));
        }));
        features().forEach((name, level) -> options.addAll(List.of("--feature", name + "=" + level)));
        return options;
    }

    /** Returns the levels of features that the test is made for. */
    private Map<String, Short> features() {
        MetadataVersion version = config.metadataVersion();
        Map<String, Short> levels = new TreeMap<>();
        Feature.PRODUCTION_FEATURES.forEach(feature -> levels.put(feature.featureName(), feature.defaultLevel(version)));
        config.features().forEach((feature, level) -> levels.put(feature.featureName(), level));
        levels.put(MetadataVersion.FEATURE_NAME, version.featureLevel());
        levels.remove("kraft.version");
        return levels;
    }

    @Override
    public void stop() {
        stopped = true;
        if (process != null)
            process.release();
    }

    @Override
    public boolean started() {
        return process != null;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    @Override
    public void shutdownBroker(int brokerId) {
        process.request("POST", "/brokers/" + brokerId + "/stop", "");
    }

    @Override
    public void startBroker(int brokerId) {
        process.request("POST", "/brokers/" + brokerId + "/start", "{}");
    }

    boolean isRunning(int brokerId) {
        return process.request("GET", "/brokers/" + brokerId, "").get("state").asText().equals("running");
    }

    /** Returns the number of records of share groups that were acknowledged with this type. */
    long acknowledged(String type) {
        return process.metric("kafka_server_sharegroupmetrics_recordacknowledgements_total", "acktype=\"" + type + "\"");
    }

    JsonNode topic(String name) {
        for (JsonNode topic : process.status().get("topics"))
            if (topic.get("name").asText().equals(name))
                return topic;
        return null;
    }

    /** Returns what the broker says of its configuration that was set at run time; nothing if it does not run. */
    Map<String, String> dynamicConfigs(int brokerId) {
        if (!isRunning(brokerId))
            return Map.of();
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(brokerId));
        return ask(admin -> admin.describeConfigs(List.of(broker)).values().get(broker).get().entries().stream()
            .filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG
                || entry.source() == ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            .filter(entry -> entry.value() != null)
            .collect(Collectors.toMap(ConfigEntry::name, ConfigEntry::value)));
    }

    /** Returns how many connections a second brokers say that they take from an address. */
    int connectionRate(String ip) {
        ClientQuotaFilter everything = ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntityType("ip")));
        Map<String, Double> rates = new HashMap<>();
        ask(admin -> admin.describeClientQuotas(everything).entities().get()).forEach((entity, quotas) ->
            rates.put(entity.entries().get("ip"), quotas.getOrDefault("connection_creation_rate", (double) Integer.MAX_VALUE)));
        Double ofOthers = rates.getOrDefault(null, (double) Integer.MAX_VALUE);
        return rates.getOrDefault(ip, ofOthers).intValue();
    }

    private interface Question<T> {
        T put(Admin admin) throws Exception;
    }

    private <T> T ask(Question<T> question) {
        try (Admin admin = admin()) {
            return question.put(admin);
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    Map<String, Uuid> topicIds() throws Exception {
        try (Admin admin = admin()) {
            return admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get().stream()
                .collect(Collectors.toMap(TopicListing::name, TopicListing::topicId));
        }
    }

    @Override
    public String bootstrapServers() {
        return String.join(",", process.bootstrapServers);
    }

    @Override
    public String bootstrapControllers() {
        return String.join(",", controllerAddresses());
    }

    /** Returns as many addresses as the test has controllers, of running brokers: all lead to the one controller. */
    private List<String> controllerAddresses() {
        return brokerIds().stream().filter(this::isRunning).map(process.bootstrapControllers::get)
            .limit(config.numControllers()).toList();
    }

    @Override
    public String clusterId() {
        return ask(admin -> admin.describeCluster().clusterId().get());
    }

    @Override
    public Type type() {
        return isCombined ? Type.CO_KRAFT : Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public Set<Integer> controllerIds() {
        int first = isCombined ? TestKitDefaults.BROKER_ID_OFFSET : TestKitDefaults.CONTROLLER_ID_OFFSET;
        return IntStream.range(first, first + config.numControllers()).boxed().collect(Collectors.toCollection(TreeSet::new));
    }

    @Override
    public Set<Integer> brokerIds() {
        return IntStream.range(0, config.numBrokers()).boxed().collect(Collectors.toCollection(TreeSet::new));
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return brokers;
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        ControllerServer controller = SimulatedBroker.controllerOf(this);
        // `values` is what tests go through to wait for the offsets of a metadata log, which is not there.
        return new HashMap<>() {
            @Override
            public ControllerServer get(Object id) {
                return controllerIds().contains(id) ? controller : null;
            }
        };
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return brokerIds().stream().map(this::port).toList();
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        return controllerAddresses().stream().map(SimulatedCluster::port).toList();
    }

    int port(int brokerId) {
        return port(process.bootstrapServers.get(brokerId));
    }

    private static int port(String address) {
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        String protocols = config.serverProperties().getOrDefault("group.coordinator.rebalance.protocols", "consumer");
        Short level = config.features().entrySet().stream()
            .filter(entry -> entry.getKey().featureName().equals("group.version"))
            .map(Map.Entry::getValue).findFirst().orElse((short) 1);
        return protocols.contains("consumer") && level > 0
            ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        TestUtils.waitForCondition(() -> {
            for (JsonNode broker : process.status().get("brokers"))
                if (!broker.get("state").asText().equals("running") || broker.get("fenced").asBoolean())
                    return false;
            return true;
        }, WAIT_MS, "not all brokers are running");
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        TestUtils.waitForCondition(() -> {
            JsonNode status = topic(topic);
            return status != null && status.get("partitions").size() == partitions;
        }, WAIT_MS, topic + " does not come");
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
                .partitions().stream().allMatch(partition -> partition.leader() != null
                    || partition.replicas().stream().noneMatch(replica -> isRunning(replica.id()))), WAIT_MS, topic + " has no leader");
        }
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        TestUtils.waitForCondition(() -> topic(topic) == null, WAIT_MS, topic + " stays");
    }

    @Override
    public void ensureConsistentMetadata() {
        // Metadata is at every broker within milliseconds, and clients ask again.
    }

    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) {
        ensureConsistentMetadata();
    }

    @Override
    public List<Authorizer> authorizers() {
        throw new UnsupportedOperationException("the authorizers are in another process");
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(() -> admin.describeAcls(filter).values().get().stream().map(AclBinding::entry)
                .collect(Collectors.toSet()).equals(Set.copyOf(entries)), WAIT_MS, "other ACLs than " + entries);
        }
    }
}
