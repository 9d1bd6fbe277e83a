package org.apache.kafka.coordinator.group;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.group.generated.OffsetCommitKey;
import org.apache.kafka.coordinator.group.generated.OffsetCommitValue;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetricsShard;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Kafka's own group manager without its runtime, driven by lines on stdin; bytes are in hexadecimal.
 *
 * <p>`request API VERSION CLIENT NUMBER BYTES` answers `records KEY:VALUE...` for each batch and
 * `answer NUMBER BYTES` for each answer; `topic NAME ID PARTITIONS`, `delete NAME`, `wait MS` and
 * `load` do what they say. Every command ends with the line `done`.
 */
public class GroupPeer {
  private static final HexFormat HEX = HexFormat.of();
  private static final PrintStream OUT = System.out;

  private long now;
  private long version = 1;
  private Map<String, Topic> topics = new LinkedHashMap<>();
  private final Map<String, Timeout> timeouts = new HashMap<>();
  private final Map<String, Runnable> tasks = new LinkedHashMap<>();
  private final List<CoordinatorRecord> log = new ArrayList<>();
  private final KafkaConfig broker;
  private final GroupCoordinatorConfig config;
  private GroupMetadataManager manager;
  private OffsetMetadataManager offsets;
  private long order = 0;

  record Topic(String name, Uuid id, int partitionCount)
      implements CoordinatorMetadataImage.TopicMetadata {
    @Override
    public List<String> partitionRacks(int partition) {
      return new ArrayList<>();
    }
  }

  record Timeout(long at, long order, CoordinatorTimer.TimeoutOperation<CoordinatorRecord> run) {}

  record Image(Map<String, Topic> topics, long version) implements CoordinatorMetadataImage {
    @Override
    public Set<Uuid> topicIds() {
      return Set.copyOf(topics.values().stream().map(Topic::id).toList());
    }

    @Override
    public Set<String> topicNames() {
      return topics.keySet();
    }

    @Override
    public Optional<TopicMetadata> topicMetadata(String name) {
      return Optional.ofNullable(topics.get(name));
    }

    @Override
    public Optional<TopicMetadata> topicMetadata(Uuid id) {
      return topics.values().stream()
          .filter(topic -> topic.id.equals(id))
          .map(topic -> (TopicMetadata) topic)
          .findFirst();
    }

    @Override
    public CoordinatorMetadataDelta emptyDelta() {
      return new Delta(List.of(), List.of(), Set.of(), this);
    }

    @Override
    public boolean isEmpty() {
      return topics.isEmpty();
    }
  }

  record Delta(
      Collection<Uuid> createdTopicIds,
      Collection<Uuid> changedTopicIds,
      Set<Uuid> deletedTopicIds,
      CoordinatorMetadataImage image)
      implements CoordinatorMetadataDelta {}

  record Context(String clientId, int requestVersion) implements AuthorizableRequestContext {
    @Override
    public String listenerName() {
      return "PLAINTEXT";
    }

    @Override
    public SecurityProtocol securityProtocol() {
      return SecurityProtocol.PLAINTEXT;
    }

    @Override
    public KafkaPrincipal principal() {
      return KafkaPrincipal.ANONYMOUS;
    }

    @Override
    public InetAddress clientAddress() {
      return InetAddress.getLoopbackAddress();
    }

    @Override
    public int requestType() {
      return 0;
    }

    @Override
    public int correlationId() {
      return 0;
    }
  }

  private final class PeerTime implements Time {
    @Override
    public long milliseconds() {
      return now;
    }

    @Override
    public long nanoseconds() {
      return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
      throw new UnsupportedOperationException();
    }
  }

  private final class PeerTimer implements CoordinatorTimer<CoordinatorRecord> {
    @Override
    public void schedule(
        String key,
        long delay,
        TimeUnit unit,
        boolean retry,
        TimeoutOperation<CoordinatorRecord> run) {
      timeouts.put(key, new Timeout(now + unit.toMillis(delay), order++, run));
    }

    @Override
    public void schedule(
        String key,
        long delay,
        TimeUnit unit,
        boolean retry,
        long backoff,
        TimeoutOperation<CoordinatorRecord> run) {
      schedule(key, delay, unit, retry, run);
    }

    @Override
    public void scheduleIfAbsent(
        String key,
        long delay,
        TimeUnit unit,
        boolean retry,
        TimeoutOperation<CoordinatorRecord> run) {
      if (!timeouts.containsKey(key)) {
        schedule(key, delay, unit, retry, run);
      }
    }

    @Override
    public void cancel(String key) {
      timeouts.remove(key);
    }

    @Override
    public boolean isScheduled(String key) {
      return timeouts.containsKey(key);
    }
  }

  private final class PeerExecutor implements CoordinatorExecutor<CoordinatorRecord> {
    @Override
    public <R> boolean schedule(
        String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
      if (tasks.containsKey(key)) {
        return false;
      }
      tasks.put(
          key,
          () -> {
            try {
              write(operation.onComplete(task.run(), null));
            } catch (Throwable error) {
              throw new IllegalStateException(error);
            }
          });
      return true;
    }

    @Override
    public boolean isScheduled(String key) {
      return tasks.containsKey(key);
    }

    @Override
    public void cancel(String key) {
      tasks.remove(key);
    }
  }

  GroupPeer(long now, Map<String, String> configs) {
    this.now = now;
    Map<String, String> all = new HashMap<>(configs);
    all.put("process.roles", "broker");
    all.put("node.id", "1");
    all.put("controller.listener.names", "CONTROLLER");
    all.put("controller.quorum.bootstrap.servers", "127.0.0.1:1");
    all.put("listeners", "PLAINTEXT://127.0.0.1:2");
    this.broker = new KafkaConfig(all, false);
    this.config = broker.groupCoordinatorConfig();
    makeManagers();
  }

  private void makeManagers() {
    SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
    GroupCoordinatorMetricsShard metrics =
        new GroupCoordinatorMetrics()
            .newMetricsShard(registry, new TopicPartition("__consumer_offsets", 0));
    Image image = new Image(topics, version);
    manager = new GroupMetadataManager.Builder()
        .withSnapshotRegistry(registry)
        .withTime(new PeerTime())
        .withTimer(new PeerTimer())
        .withExecutor(new PeerExecutor())
        .withConfig(config)
        .withGroupConfigManager(new GroupConfigManager(Map.of(), config, broker.shareGroupConfig()))
        .withGroupCoordinatorMetricsShard(metrics)
        .withMetadataImage(image)
        .build();
    offsets = new OffsetMetadataManager.Builder()
        .withSnapshotRegistry(registry)
        .withTime(new PeerTime())
        .withGroupMetadataManager(manager)
        .withGroupCoordinatorConfig(config)
        .withGroupCoordinatorMetricsShard(metrics)
        .withMetadataImage(image)
        .build();
  }

  private void write(CoordinatorResult<?, CoordinatorRecord> result) {
    CompletableFuture<Void> appended = result.appendFuture();
    if (!result.records().isEmpty()) {
      GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
      StringBuilder line = new StringBuilder("records");
      for (CoordinatorRecord record : result.records()) {
        byte[] value = serde.serializeValue(record);
        line.append(' ').append(HEX.formatHex(serde.serializeKey(record))).append(':');
        line.append(value == null ? "" : HEX.formatHex(value));
        if (result.replayRecords()) {
          replay(record);
        }
        log.add(serde.deserialize(
            ByteBuffer.wrap(serde.serializeKey(record)), value == null ? null : ByteBuffer.wrap(value)));
      }
      OUT.println(line);
    }
    if (appended != null) {
      appended.complete(null);
    }
  }

  private void replay(CoordinatorRecord record) {
    ApiMessage key = record.key();
    ApiMessage value = record.value() == null ? null : record.value().message();
    if (key instanceof OffsetCommitKey offset) {
      offsets.replay(order++, -1, offset, (OffsetCommitValue) value);
      return;
    }
    try {
      for (var method : GroupMetadataManager.class.getMethods()) {
        if (method.getName().equals("replay")
            && method.getParameterTypes()[0] == key.getClass()) {
          method.invoke(manager, key, value);
          return;
        }
      }
    } catch (InvocationTargetException error) {
      throw new IllegalStateException(error.getCause());
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException("no replay of " + key);
  }

  private void answer(String number, ApiMessage response, int version) {
    ByteBuffer bytes =
        MessageUtil.toByteBufferAccessor(response, (short) version).buffer();
    byte[] content = new byte[bytes.remaining()];
    bytes.get(content);
    OUT.println("answer " + number + " " + HEX.formatHex(content));
  }

  private static ByteBufferAccessor bytesOf(String[] words) {
    return new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(words[5])));
  }

  private void request(String[] words) {
    int api = Integer.parseInt(words[1]);
    int version = Integer.parseInt(words[2]);
    Context context = new Context(words[3], version);
    String number = words[4];
    ByteBufferAccessor bytes = bytesOf(words);
    short v = (short) version;
    try {
      switch (api) {
        case 68 -> {
          var result =
              manager.consumerGroupHeartbeat(
                  context, new ConsumerGroupHeartbeatRequestData(bytes, v));
          write(result);
          answer(number, result.response(), version);
        }
        case 69 -> {
          var groups = new ConsumerGroupDescribeRequestData(bytes, v).groupIds();
          answer(
              number,
              new ConsumerGroupDescribeResponseData()
                  .setGroups(manager.consumerGroupDescribe(groups, Long.MAX_VALUE)),
              version);
        }
        case 11 -> {
          var response = new CompletableFuture<JoinGroupResponseData>();
          response.whenComplete((data, error) -> answer(number, data, version));
          write(manager.classicGroupJoin(context, new JoinGroupRequestData(bytes, v), response));
        }
        case 14 -> {
          var response = new CompletableFuture<SyncGroupResponseData>();
          response.whenComplete((data, error) -> answer(number, data, version));
          write(manager.classicGroupSync(context, new SyncGroupRequestData(bytes, v), response));
        }
        case 12 -> {
          var result = manager.classicGroupHeartbeat(context, new HeartbeatRequestData(bytes, v));
          write(result);
          answer(number, result.response(), version);
        }
        case 13 -> {
          var result = manager.classicGroupLeave(context, new LeaveGroupRequestData(bytes, v));
          write(result);
          answer(number, result.response(), version);
        }
        case 28 -> {
          var result =
              offsets.commitTransactionalOffset(
                  context, new TxnOffsetCommitRequestData(bytes, v));
          write(result);
          answer(number, result.response(), version);
        }
        default -> throw new IllegalArgumentException("API " + api);
      }
    } catch (Exception exception) {
      short code = ApiError.fromThrowable(exception).error().code();
      if (code == -1) {
        exception.printStackTrace();
      }
      answer(
          number,
          switch (api) {
            case 68 -> new ConsumerGroupHeartbeatResponseData().setErrorCode(code);
            case 11 -> new JoinGroupResponseData().setErrorCode(code);
            case 14 -> new SyncGroupResponseData().setErrorCode(code);
            case 12 -> new HeartbeatResponseData().setErrorCode(code);
            case 28 -> refused(new TxnOffsetCommitRequestData(bytesOf(words), v), code);
            default -> new LeaveGroupResponseData().setErrorCode(code);
          },
          version);
    }
  }

  /** A request that fails as a whole is answered for each partition. */
  private static TxnOffsetCommitResponseData refused(TxnOffsetCommitRequestData request, short code) {
    var response = new TxnOffsetCommitResponseData();
    for (var topic : request.topics()) {
      var told =
          new TxnOffsetCommitResponseData.TxnOffsetCommitResponseTopic().setName(topic.name());
      for (var partition : topic.partitions()) {
        told.partitions()
            .add(
                new TxnOffsetCommitResponseData.TxnOffsetCommitResponsePartition()
                    .setPartitionIndex(partition.partitionIndex())
                    .setErrorCode(code));
      }
      response.topics().add(told);
    }
    return response;
  }

  private void newImage(Map<String, Topic> changed, List<Uuid> created, List<Uuid> altered, Set<Uuid> deleted) {
    Image before = new Image(topics, version);
    topics = changed;
    version++;
    manager.onMetadataUpdate(
        new Delta(created, altered, deleted, before), new Image(topics, version));
  }

  private void handle(String[] words) {
    Map<String, Topic> changed = new LinkedHashMap<>(topics);
    switch (words[0]) {
      case "request" -> request(words);
      case "topic" -> {
        byte[] id = HEX.parseHex(words[2]);
        ByteBuffer buffer = ByteBuffer.wrap(id);
        Topic topic =
            new Topic(
                words[1],
                new Uuid(buffer.getLong(), buffer.getLong()),
                Integer.parseInt(words[3]));
        boolean isNew = changed.put(words[1], topic) == null;
        newImage(
            changed, isNew ? List.of(topic.id) : List.of(), List.of(topic.id), Set.of());
      }
      case "delete" -> newImage(changed, List.of(), List.of(), Set.of(changed.remove(words[1]).id));
      case "wait" -> {
        long until = now + Long.parseLong(words[1]);
        while (true) {
          var next =
              timeouts.entrySet().stream()
                  .filter(entry -> entry.getValue().at <= until)
                  .min(
                      (a, b) ->
                          a.getValue().at != b.getValue().at
                              ? Long.compare(a.getValue().at, b.getValue().at)
                              : Long.compare(a.getValue().order, b.getValue().order));
          if (next.isEmpty()) {
            break;
          }
          timeouts.remove(next.get().getKey());
          now = next.get().getValue().at;
          write(next.get().getValue().run.generateRecords());
        }
        now = until;
      }
      case "load" -> {
        timeouts.clear();
        tasks.clear();
        makeManagers();
        manager.onMetadataUpdate(
            new Delta(List.of(), List.of(), Set.of(), new Image(topics, version)),
            new Image(topics, version));
        log.forEach(this::replay);
        manager.onLoaded();
      }
      default -> throw new IllegalArgumentException(words[0]);
    }
    while (!tasks.isEmpty()) {
      String key = tasks.keySet().iterator().next();
      Runnable task = tasks.get(key);
      tasks.remove(key);
      task.run();
    }
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> configs = new HashMap<>();
    for (int at = 1; at < arguments.length; at++) {
      String[] parts = arguments[at].split("=", 2);
      configs.put(parts[0], parts[1]);
    }
    GroupPeer peer = new GroupPeer(Long.parseLong(arguments[0]), configs);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      peer.handle(line.split(" "));
      OUT.println("done");
      OUT.flush();
    }
  }
}
