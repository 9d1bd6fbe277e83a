import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.MetadataVersion;

/** Answers each line, a partition and what shall change, with Kafka's next state of it. */
public class PartitionChangeOracle {
    private static final String KEEP = "keep";

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.append(answer(line.split(";", -1))).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String[] f) {
        PartitionRegistration before = new PartitionRegistration.Builder()
            .setReplicas(array(f[0]))
            .setDirectories(DirectoryId.unassignedArray(array(f[0]).length))
            .setIsr(array(f[1]))
            .setLeader(Integer.parseInt(f[2]))
            .setLeaderEpoch(Integer.parseInt(f[3]))
            .setPartitionEpoch(Integer.parseInt(f[4]))
            .setElr(array(f[5]))
            .setLastKnownElr(array(f[6]))
            .setLeaderRecoveryState(recovery(f[7]))
            .setAddingReplicas(array(f[8]))
            .setRemovingReplicas(array(f[9]))
            .build();
        List<Integer> live = list(f[10]);
        PartitionChangeBuilder builder = new PartitionChangeBuilder(
            before, new Uuid(7, 7), 0, live::contains, MetadataVersion.latestProduction(),
            Integer.parseInt(f[11]), Boolean.parseBoolean(f[12]));
        builder.setElection(PartitionChangeBuilder.Election.valueOf(f[13]));
        builder.setDefaultDirProvider(broker -> DirectoryId.UNASSIGNED);
        if (!f[14].equals(KEEP)) builder.setTargetIsr(list(f[14]));
        if (!f[15].equals(KEEP)) builder.setTargetReplicas(list(f[15]));
        if (!f[16].equals(KEEP)) builder.setTargetAdding(list(f[16]));
        if (!f[17].equals(KEEP)) builder.setTargetRemoving(list(f[17]));
        if (!f[18].equals(KEEP)) builder.setTargetLeaderRecoveryState(recovery(f[18]));
        if (!f[19].equals(KEEP)) builder.setUncleanShutdownReplicas(list(f[19]));
        return builder.build()
            .map(record -> text(before, (PartitionChangeRecord) record.message()))
            .orElse("none");
    }

    private static String text(PartitionRegistration before, PartitionChangeRecord record) {
        boolean onlyDirectories = PartitionChangeBuilder.changeRecordIsNoOp(
            record.duplicate().setDirectories(null));
        if (onlyDirectories) return "none";
        PartitionRegistration after = before.merge(record);
        return String.join(";", text(after.replicas), text(after.isr), "" + after.leader,
            "" + after.leaderEpoch, "" + after.partitionEpoch, text(after.elr),
            text(after.lastKnownElr),
            "" + (after.leaderRecoveryState == LeaderRecoveryState.RECOVERING),
            text(after.addingReplicas), text(after.removingReplicas));
    }

    private static LeaderRecoveryState recovery(String recovering) {
        return Boolean.parseBoolean(recovering)
            ? LeaderRecoveryState.RECOVERING : LeaderRecoveryState.RECOVERED;
    }

    private static List<Integer> list(String text) {
        List<Integer> numbers = new ArrayList<>();
        for (String part : text.split(",")) {
            if (!part.isEmpty()) numbers.add(Integer.parseInt(part));
        }
        return numbers;
    }

    private static int[] array(String text) {
        return list(text).stream().mapToInt(Integer::intValue).toArray();
    }

    private static String text(int[] numbers) {
        return Arrays.stream(numbers).mapToObj(String::valueOf).collect(Collectors.joining(","));
    }
}
