import java.lang.management.ManagementFactory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * The work of bench_purgatory.py on Kafka's own classes. Arguments: operations, rounds.
 * Prints one JSON line per round with nanoseconds of processor time per operation: of the calling
 * thread, for the expiry of all threads. The first rounds warm up.
 */
public class KafkaPurgatory {
    record Key(String keyLabel) implements DelayedOperationKey { }

    static class Task extends TimerTask {
        static final AtomicInteger ran = new AtomicInteger();

        Task(long delayMs) {
            super(delayMs);
        }

        @Override
        public void run() {
            ran.incrementAndGet();
        }
    }

    static class Operation extends DelayedOperation {
        volatile boolean ready;

        Operation() {
            super(30_000);
        }

        @Override
        public boolean tryComplete() {
            return ready && forceComplete();
        }

        @Override
        public void onComplete() { }

        @Override
        public void onExpiration() { }
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        for (int round = 0; round < Integer.parseInt(arguments[1]); round++) {
            Random random = new Random(round);
            double[] timer = addAndCancel(count, random);
            double expire = expire(count, random);
            System.out.printf(
                "{\"add\": %.1f, \"cancel\": %.1f, \"expire\": %.1f, \"keys_1\": %.1f, \"keys_3\": %.1f}%n",
                timer[0], timer[1], expire, watchAndComplete(count, 1), watchAndComplete(count, 3));
        }
        System.exit(0);
    }

    static double[] addAndCancel(int count, Random random) throws Exception {
        List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            tasks.add(new Task(1_000 + random.nextInt(30_000)));
        }
        try (SystemTimer timer = new SystemTimer("bench")) {
            long start = threadNs();
            for (Task task : tasks) {
                timer.add(task);
            }
            long added = threadNs();
            for (Task task : tasks) {
                task.cancel();
            }
            long cancelled = threadNs();
            return new double[] {(added - start) / (double) count, (cancelled - added) / (double) count};
        }
    }

    static double expire(int count, Random random) throws Exception {
        Task.ran.set(0);
        try (SystemTimer timer = new SystemTimer("bench")) {
            for (int i = 0; i < count; i++) {
                timer.add(new Task(500 + random.nextInt(1_000)));
            }
            long before = cpuNs();
            while (Task.ran.get() < count) {
                timer.advanceClock(200);
            }
            return (cpuNs() - before) / (double) count;
        }
    }

    static long threadNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    static long cpuNs() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }

    static double watchAndComplete(int count, int keysPerOperation) throws Exception {
        DelayedOperationPurgatory<Operation> purgatory =
            new DelayedOperationPurgatory<>("bench", 0, 1000);
        List<Key> keys = new ArrayList<>();
        for (int i = 0; i < 103; i++) {
            keys.add(new Key("key-" + i));
        }
        ArrayDeque<Operation> parked = new ArrayDeque<>();
        long start = threadNs();
        for (int i = 0; i < count; i++) {
            int first = i % 100;
            Operation operation = new Operation();
            purgatory.tryCompleteElseWatch(operation, keys.subList(first, first + keysPerOperation));
            parked.add(operation);
            if (parked.size() == 100) {
                Operation oldest = parked.poll();
                oldest.ready = true;
                purgatory.checkAndComplete(keys.get((i + 1) % 100));
            }
        }
        double elapsed = (threadNs() - start) / (double) count;
        purgatory.shutdown();
        return elapsed;
    }
}
