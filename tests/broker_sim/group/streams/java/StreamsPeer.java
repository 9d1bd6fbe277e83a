package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.generated.StreamsGroupCurrentMemberAssignmentValue;
import org.apache.kafka.coordinator.group.streams.StreamsCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.TopologyMetadata;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.EndpointToPartitionsManager;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Kafka's own pure parts of streams groups, driven by lines on stdin: a command and its input in JSON.
 *
 * <p>`assign` runs the assignor; `configure` looks at the topics of a topology. Each answers one line of
 * JSON, then the line `done`. Messages are bytes in hexadecimal.
 */
public class StreamsPeer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HexFormat HEX = HexFormat.of();
  private static final LogContext LOG = new LogContext();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err); // for what Kafka logs
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", 2);
      JsonNode told = JSON.readTree(words[1]);
      JsonNode answer = words[0].equals("assign") ? assign(told) : configure(told);
      out.println(JSON.writeValueAsString(answer));
      out.println("done");
    }
  }

  private static JsonNode assign(JsonNode told) {
    TreeMap<String, ConfiguredSubtopology> subtopologies = new TreeMap<>();
    for (JsonNode subtopology : told.get("subtopologies")) {
      ConfiguredInternalTopic changelog =
          new ConfiguredInternalTopic("changelog", 1, Optional.empty(), Map.of());
      subtopologies.put(
          subtopology.get(0).asText(),
          new ConfiguredSubtopology(
              subtopology.get(1).asInt(),
              Set.of(),
              Map.of(),
              Set.of(),
              subtopology.get(2).asBoolean() ? Map.of("changelog", changelog) : Map.of()));
    }
    Map<String, AssignmentMemberSpec> members = new HashMap<>();
    for (JsonNode member : told.get("members")) {
      members.put(
          member.get(0).asText(),
          new AssignmentMemberSpec(
              Optional.ofNullable(member.get(4).textValue()),
              Optional.ofNullable(member.get(4).textValue()),
              tasks(member.get(2)),
              tasks(member.get(3)),
              Map.of(),
              member.get(1).asText(),
              Map.of("zone", member.get(0).asText()),
              Map.of(),
              Map.of()));
    }
    Map<String, String> configs = new TreeMap<>();
    if (told.hasNonNull("standby")) {
      configs.put("num.standby.replicas", told.get("standby").asText());
    }
    Map<String, MemberAssignment> targets =
        new StickyTaskAssignor()
            .assign(
                new GroupSpecImpl(members, configs),
                new TopologyMetadata(CoordinatorMetadataImage.EMPTY, subtopologies))
            .members();
    ArrayNode answer = JSON.createArrayNode();
    for (String memberId : members.keySet()) {
      MemberAssignment target = targets.get(memberId);
      answer
          .addArray()
          .add(memberId)
          .add(told(target.activeTasks()))
          .add(told(target.standbyTasks()))
          .add(told(target.warmupTasks()));
    }
    return answer;
  }

  private static Map<String, Set<Integer>> tasks(JsonNode told) {
    Map<String, Set<Integer>> tasks = new HashMap<>();
    for (JsonNode of : told) {
      tasks.put(of.get(0).asText(), new HashSet<>(numbers(of.get(1))));
    }
    return tasks;
  }

  private static List<Integer> numbers(JsonNode told) {
    List<Integer> numbers = new ArrayList<>();
    told.forEach(number -> numbers.add(number.asInt()));
    return numbers;
  }

  private static ArrayNode told(Map<String, Set<Integer>> tasks) {
    ArrayNode answer = JSON.createArrayNode();
    tasks.forEach(
        (subtopologyId, partitions) -> {
          ArrayNode numbers = answer.addArray().add(subtopologyId).addArray();
          partitions.stream().sorted().forEach(numbers::add);
        });
    return answer;
  }

  private static JsonNode configure(JsonNode told) {
    StreamsGroupHeartbeatRequestData request =
        new StreamsGroupHeartbeatRequestData(
            new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(told.get("request").asText()))),
            (short) 0);
    Image image = new Image(new LinkedHashMap<>());
    for (JsonNode topic : told.get("topics")) {
      ByteBuffer id = ByteBuffer.wrap(HEX.parseHex(topic.get(1).asText()));
      Uuid topicId = new Uuid(id.getLong(), id.getLong());
      String name = topic.get(0).asText();
      image.topics.put(name, new Topic(name, topicId, topic.get(2).asInt()));
    }
    ObjectNode answer = JSON.createObjectNode();
    try {
      configure(request, image, told, answer);
    } catch (RuntimeException error) {
      Errors known = Errors.forException(error);
      answer.removeAll();
      answer.put("error", known.code());
      answer.put("text", known == Errors.UNKNOWN_SERVER_ERROR ? null : error.getMessage());
    }
    return answer;
  }

  private static void configure(
      StreamsGroupHeartbeatRequestData request, Image image, JsonNode told, ObjectNode answer) {
    StreamsTopology topology = StreamsTopology.fromHeartbeatRequest(request.topology());
    StreamsGroup group = new StreamsGroup(LOG, new SnapshotRegistry(LOG), "group");
    long hash = group.computeMetadataHash(image, new HashMap<>(), topology);
    ConfiguredTopology configured =
        InternalTopicManager.configureTopics(
            LOG.logger(StreamsPeer.class), "group", "member", hash, topology, image, Time.SYSTEM);
    answer.put(
        "record",
        bytes(
            StreamsCoordinatorRecordHelpers.convertToStreamsGroupTopologyRecord(request.topology()),
            0));
    answer.put("hash", hash);
    topology.requiredTopics().forEach(answer.putArray("required")::add);
    ObjectNode readers = answer.putObject("readers");
    topology.sourceTopicMap().forEach((name, reader) -> readers.put(name, reader.subtopologyId()));
    answer.put("topology", described(topology.asStreamsGroupDescribeTopology()));
    answer.put("ready", configured.isReady());
    configured
        .topicConfigurationException()
        .ifPresent(
            error ->
                answer.put("status", error.status().code()).put("status_text", error.getMessage()));
    CreateTopicsRequestData create = new CreateTopicsRequestData();
    configured.internalTopicsToBeCreated().values().forEach(create.topics()::add);
    answer.put("create", bytes(create, 7));
    configured
        .subtopologies()
        .ifPresent(
            subtopologies -> {
              answer.put("configured", described(configured.asStreamsGroupDescribeTopology()));
              subtopologies(subtopologies, answer.putArray("subtopologies"));
            });
    if (told.has("active")) {
      group.setConfiguredTopology(configured);
      answer.put("endpoint", endpoint(group, told, image));
    }
  }

  private static void subtopologies(
      SortedMap<String, ConfiguredSubtopology> subtopologies, ArrayNode answer) {
    TopologyMetadata metadata = new TopologyMetadata(CoordinatorMetadataImage.EMPTY, subtopologies);
    for (String id : metadata.subtopologies()) {
      ArrayNode told = answer.addArray().add(id).add(metadata.maxNumInputPartitions(id));
      told.add(metadata.isStateful(id));
      subtopologies.get(id).sourceTopics().forEach(told.addArray()::add);
    }
  }

  private static String endpoint(StreamsGroup group, JsonNode told, Image image) {
    TasksTupleWithEpochs tasks =
        TasksTupleWithEpochs.fromCurrentAssignmentRecord(
            LOG.logger(StreamsPeer.class),
            "group",
            stored(told.get("active")),
            stored(told.get("standby")),
            List.of(),
            1);
    StreamsGroupMember member =
        new StreamsGroupMember.Builder("member").setAssignedTasks(tasks).build();
    StreamsGroupHeartbeatResponseData response = new StreamsGroupHeartbeatResponseData();
    response.setPartitionsByUserEndpoint(
        List.of(
            EndpointToPartitionsManager.endpointToPartitions(
                member,
                new StreamsGroupHeartbeatResponseData.Endpoint().setHost("host").setPort(80),
                group,
                image)));
    return bytes(response, 0);
  }

  private static List<StreamsGroupCurrentMemberAssignmentValue.TaskIds> stored(JsonNode told) {
    List<StreamsGroupCurrentMemberAssignmentValue.TaskIds> stored = new ArrayList<>();
    for (JsonNode of : told) {
      stored.add(
          new StreamsGroupCurrentMemberAssignmentValue.TaskIds()
              .setSubtopologyId(of.get(0).asText())
              .setPartitions(numbers(of.get(1)))
              .setAssignmentEpochs(null));
    }
    return stored;
  }

  private static String described(StreamsGroupDescribeResponseData.Topology topology) {
    StreamsGroupDescribeResponseData response = new StreamsGroupDescribeResponseData();
    response.groups().add(
        new StreamsGroupDescribeResponseData.DescribedGroup().setTopology(topology));
    return bytes(response, 0);
  }

  private static String bytes(ApiMessage message, int version) {
    ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, (short) version).buffer();
    byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return HEX.formatHex(bytes);
  }

  record Topic(String name, Uuid id, int partitionCount)
      implements CoordinatorMetadataImage.TopicMetadata {
    @Override
    public List<String> partitionRacks(int partition) {
      return new ArrayList<>();
    }
  }

  record Image(Map<String, Topic> topics) implements CoordinatorMetadataImage {
    @Override
    public Set<Uuid> topicIds() {
      throw new UnsupportedOperationException();
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
      throw new UnsupportedOperationException();
    }

    @Override
    public CoordinatorMetadataDelta emptyDelta() {
      throw new UnsupportedOperationException();
    }

    @Override
    public long version() {
      return 1;
    }

    @Override
    public boolean isEmpty() {
      return topics.isEmpty();
    }
  }
}
