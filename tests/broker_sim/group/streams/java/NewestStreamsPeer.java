package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.TopologyMetadata;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredInternalTopic;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredSubtopology;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * What Kafka 4.4 does of streams groups in another way than 4.3, driven by lines on stdin.
 *
 * <p>`assign` runs the assignor; `step` takes a member's next step towards its target. Each answers one
 * line of JSON, then the line `done`.
 */
public class NewestStreamsPeer {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err); // for what Kafka logs
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", 2);
      JsonNode told = JSON.readTree(words[1]);
      JsonNode answer = words[0].equals("assign") ? assign(told) : step(told);
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
    Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
    for (JsonNode member : told.get("members")) {
      members.put(
          member.get("id").asText(),
          new MemberMetadataAndStateImpl(
              Optional.empty(),
              Optional.empty(),
              member.get("process").asText(),
              Map.of(),
              tasks(member.get("active")),
              tasks(member.get("standby")),
              Map.of(),
              offsets(member.get("offsets")),
              Map.of()));
    }
    AssignmentConfigsImpl configs = AssignmentConfigsImpl.DEFAULT;
    if (told.hasNonNull("standby")) {
      configs = configs.withNumStandbyReplicas(told.get("standby").asInt());
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
      ArrayNode row = answer.addArray().add(memberId);
      row.add(sorted(target.activeTasks())).add(sorted(target.standbyTasks()));
    }
    return answer;
  }

  private static JsonNode step(JsonNode told) {
    LogContext log = new LogContext();
    StreamsGroup group = new StreamsGroup(log, new SnapshotRegistry(log), "group");
    for (JsonNode member : told.get("members")) {
      group.updateMember(member(member));
    }
    JsonNode target = told.get("target");
    CurrentAssignmentBuilder builder =
        new CurrentAssignmentBuilder(group.getMemberOrThrow(told.get("member").asText()))
            .withTargetAssignment(told.get("epoch").asInt(), tuple(target))
            .withCurrentActiveTaskProcessId(group::currentActiveTaskProcessId)
            .withCurrentStandbyTaskProcessIds(group::currentStandbyTaskProcessIds)
            .withCurrentWarmupTaskProcessIds(group::currentWarmupTaskProcessIds)
            .withOwnedAssignment(told.hasNonNull("owned") ? tuple(told.get("owned")) : null);
    StreamsGroupMember after = builder.build();
    ObjectNode answer = JSON.createObjectNode();
    answer.put("state", after.state().value());
    answer.put("epoch", after.memberEpoch()).put("previous", after.previousMemberEpoch());
    answer.set("assigned", told(after.assignedTasks()));
    answer.set("revoked", told(after.tasksPendingRevocation()));
    return answer;
  }

  private static StreamsGroupMember member(JsonNode told) {
    return StreamsGroupMember.Builder.withDefaults(told.get("id").asText())
        .setProcessId(told.get("process").asText())
        .setState(MemberState.fromValue((byte) told.get("state").asInt()))
        .setMemberEpoch(told.get("epoch").asInt())
        .setPreviousMemberEpoch(told.get("previous").asInt())
        .setAssignedTasks(withEpochs(told.get("assigned")))
        .setTasksPendingRevocation(withEpochs(told.get("revoked")))
        .build();
  }

  private static TasksTuple tuple(JsonNode told) {
    return new TasksTuple(tasks(told.get(0)), tasks(told.get(1)), tasks(told.get(2)));
  }

  private static TasksTupleWithEpochs withEpochs(JsonNode told) {
    Map<String, Map<Integer, Integer>> active = new HashMap<>();
    for (JsonNode of : told.get(0)) {
      Map<Integer, Integer> epochs = new HashMap<>();
      of.get(1).forEach(task -> epochs.put(task.get(0).asInt(), task.get(1).asInt()));
      active.put(of.get(0).asText(), epochs);
    }
    return new TasksTupleWithEpochs(active, tasks(told.get(1)), tasks(told.get(2)));
  }

  private static ArrayNode told(TasksTupleWithEpochs tasks) {
    ArrayNode active = JSON.createArrayNode();
    new TreeMap<>(tasks.activeTasksWithEpochs())
        .forEach(
            (subtopologyId, epochs) -> {
              ArrayNode rows = active.addArray().add(subtopologyId).addArray();
              new TreeMap<>(epochs)
                  .forEach((partition, epoch) -> rows.addArray().add(partition).add(epoch));
            });
    ArrayNode answer = JSON.createArrayNode().add(active);
    return answer.add(sorted(tasks.standbyTasks())).add(sorted(tasks.warmupTasks()));
  }

  private static ArrayNode sorted(Map<String, Set<Integer>> tasks) {
    ArrayNode answer = JSON.createArrayNode();
    new TreeMap<>(tasks)
        .forEach(
            (subtopologyId, partitions) -> {
              ArrayNode numbers = answer.addArray().add(subtopologyId).addArray();
              partitions.stream().sorted().forEach(numbers::add);
            });
    return answer;
  }

  private static Map<String, Set<Integer>> tasks(JsonNode told) {
    Map<String, Set<Integer>> tasks = new HashMap<>();
    for (JsonNode of : told) {
      Set<Integer> partitions = new HashSet<>();
      of.get(1).forEach(number -> partitions.add(number.asInt()));
      tasks.put(of.get(0).asText(), partitions);
    }
    return tasks;
  }

  private static Map<String, Map<Integer, Long>> offsets(JsonNode told) {
    Map<String, Map<Integer, Long>> offsets = new HashMap<>();
    for (JsonNode of : told) {
      Map<Integer, Long> byPartition = new HashMap<>();
      of.get(1).forEach(task -> byPartition.put(task.get(0).asInt(), task.get(1).asLong()));
      offsets.put(of.get(0).asText(), byPartition);
    }
    return offsets;
  }
}
