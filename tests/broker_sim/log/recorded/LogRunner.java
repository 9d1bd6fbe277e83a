import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Gives the commands on standard input, one a line, to a UnifiedLog; one line of answer each. */
public class LogRunner {
    private static final long START_MS = 1_000_000;
    private static final short PRODUCE_VERSION = 11;
    private long nowMs = START_MS;
    private UnifiedLog log;

    private final Time time = new Time() {
        public long milliseconds() { return nowMs; }
        public long nanoseconds() { return nowMs * 1_000_000; }
        public void sleep(long ms) { nowMs += ms; }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
    };

    /** Runs what is to be done once at once, and what is to be done from time to time never. */
    private static final class InlineScheduler implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public void resizeThreadPool(int size) { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) task.run();
            return new Done();
        }
    }

    private static final class Done extends CompletableFuture<Object> implements ScheduledFuture<Object> {
        public long getDelay(TimeUnit unit) { return 0; }
        public int compareTo(Delayed other) { return 0; }
    }

    private void create(String[] words) throws Exception {
        Properties configs = new Properties();
        for (int i = 1; i < words.length; i++) {
            String[] pair = words[i].split("=");
            configs.put(pair[0], pair[1]);
        }
        File dir = new File(Files.createTempDirectory("log-runner").toFile(), "t-0");
        dir.mkdirs();
        nowMs = START_MS;
        log = UnifiedLog.create(dir, new LogConfig(configs), 0, 0, new InlineScheduler(),
            new BrokerTopicStats(), time, 900_000, new ProducerStateManagerConfig(86_400_000, false),
            600_000, new LogDirFailureChannel(1), true, Optional.empty());
    }

    private static MemoryRecords records(String hex) {
        byte[] bytes = hex.equals("-") ? new byte[0] : HexFormat.of().parseHex(hex);
        return MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
    }

    private String appendAsLeader(String hex, int epoch, AppendOrigin origin, short version) {
        MemoryRecords records = records(hex);
        if (origin == AppendOrigin.CLIENT) ProduceRequest.validateRecords(PRODUCE_VERSION, records);
        LogAppendInfo info = log.appendAsLeader(records, epoch, origin, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, version);
        return info.firstOffset() + " " + info.lastOffset() + " " + info.logAppendTime() + " " + info.logStartOffset();
    }

    private String read(long offset, int maxBytes, FetchIsolation isolation, boolean minOneMessage) throws Exception {
        var records = log.read(offset, maxBytes, isolation, minOneMessage).records;
        ByteBuffer buffer;
        if (records instanceof FileRecords) {
            buffer = ByteBuffer.allocate(records.sizeInBytes());
            ((FileRecords) records).readInto(buffer, 0);
        } else {
            buffer = ((MemoryRecords) records).buffer();
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return "r" + HexFormat.of().formatHex(bytes);
    }

    private String producers() {
        var byId = new TreeMap<Long, String>();
        log.activeProducers().forEach(p -> byId.put(p.producerId(), p.producerEpoch() + "/" + p.lastSequence()
            + "/" + p.lastTimestamp() + "/" + p.coordinatorEpoch() + "/" + p.currentTxnStartOffset()));
        return byId.toString();
    }

    private String state() {
        return log.logStartOffset() + " " + log.lastStableOffset() + " " + log.highWatermark() + " "
            + log.logEndOffset() + " " + log.size() + " "
            + log.leaderEpochCache().epochEntries().stream().map(e -> e.epoch() + ":" + e.startOffset()).toList();
    }

    private String run(String[] words) throws Exception {
        switch (words[0]) {
            case "new": create(words); return "ok";
            case "time": nowMs = Long.parseLong(words[1]); return "ok";
            case "epoch": log.leaderEpochCache().assign(Integer.parseInt(words[1]), log.logEndOffset()); return "ok";
            case "leader": return appendAsLeader(words[1], Integer.parseInt(words[2]),
                AppendOrigin.valueOf(words[3]), Short.parseShort(words[4]));
            case "follower": {
                LogAppendInfo info = log.appendAsFollower(records(words[1]), Integer.parseInt(words[2]));
                return info.firstOffset() + " " + info.lastOffset() + " " + info.validBytes();
            }
            case "read": return read(Long.parseLong(words[1]), Integer.parseInt(words[2]),
                FetchIsolation.valueOf(words[3]), words[4].equals("1"));
            case "abread":
                return log.read(Long.parseLong(words[1]), 1_000_000, FetchIsolation.TXN_COMMITTED, false)
                    .abortedTransactions.get().stream().map(t -> t.producerId() + "/" + t.firstOffset()).toList().toString();
            case "hw": return "" + log.updateHighWatermark(Long.parseLong(words[1]));
            case "start": return "" + log.maybeIncrementLogStartOffset(Long.parseLong(words[1]),
                LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "truncate": return "" + log.truncateTo(Long.parseLong(words[1]));
            case "truncatefully": log.truncateFullyAndStartAt(Long.parseLong(words[1]), Optional.empty()); return "ok";
            case "delete": return "" + log.deleteOldSegments();
            case "roll": log.roll(); return "ok";
            case "ts": return log.fetchOffsetByTimestamp(Long.parseLong(words[1]), Optional.empty()).timestampAndOffsetOpt()
                .map(t -> t.timestamp + " " + t.offset + " " + t.leaderEpoch.orElse(-1)).orElse("none");
            case "endoffset": {
                var end = log.leaderEpochCache().endOffsetFor(Integer.parseInt(words[1]), log.logEndOffset());
                return end.getKey() + " " + end.getValue();
            }
            case "segments": return log.logSegments().stream().map(s -> s.baseOffset() + "/" + s.size()).toList().toString();
            case "producers": return producers();
            case "state": return state();
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        LogRunner runner = new LogRunner();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = runner.run(line.split(" "));
            } catch (RecordValidationException e) {
                answer = "E " + Errors.forException(e.invalidException()) + " " + e;
            } catch (Exception e) {
                answer = "E " + Errors.forException(e) + " " + e;
            }
            System.out.println(answer.replace('\n', ' '));
        }
    }
}
