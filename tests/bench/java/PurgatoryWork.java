import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * The work of purgatory_work.py on Kafka's own classes: growth SIZE | workload | precision.
 * Prints one JSON object.
 */
public class PurgatoryWork {
    static final int CHUNK = 1_000;
    static final int WARM_UP = 300;
    static final int REPEATS = 31;
    static final Random CHANCE = new Random(42);

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
        static final AtomicInteger expired = new AtomicInteger();
        volatile boolean ready;

        Operation(long delayMs) {
            super(delayMs);
        }

        @Override
        public boolean tryComplete() {
            return ready && forceComplete();
        }

        @Override
        public void onComplete() { }

        @Override
        public void onExpiration() {
            expired.incrementAndGet();
        }
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "growth" -> growth(Integer.parseInt(arguments[1]));
            case "workload" -> workload();
            default -> precision();
        }
        System.exit(0);
    }

    static long delayMs() {
        return 1_000 + CHANCE.nextInt(30_000);
    }

    /** Delays are a hundred times longer than in Python: nothing expires while it is measured. */
    static void growth(int size) throws Exception {
        double[] adds = new double[REPEATS];
        double[] cancels = new double[REPEATS];
        try (SystemTimer timer = new SystemTimer("bench")) {
            for (int i = 0; i < size; i++) {
                timer.add(new Task(100 * delayMs()));
            }
            for (int round = -WARM_UP; round < REPEATS; round++) {
                List<Task> fresh = new ArrayList<>();
                for (int i = 0; i < CHUNK; i++) {
                    fresh.add(new Task(100 * delayMs()));
                }
                long start = threadNs();
                for (Task task : fresh) {
                    timer.add(task);
                }
                long added = threadNs();
                for (Task task : fresh) {
                    task.cancel();
                }
                if (round >= 0) {
                    adds[round] = (added - start) / (double) CHUNK;
                    cancels[round] = (threadNs() - added) / (double) CHUNK;
                }
            }
        }
        double[] used = new double[1];
        double three = growWatches(size, 3, used);
        System.out.printf("{\"add\": %.1f, \"cancel\": %.1f, \"keys_1\": %.1f, \"keys_3\": %.1f, "
            + "\"bytes_3\": %.1f, \"expire\": %.1f}%n",
            median(adds), median(cancels), growWatches(size, 1, new double[1]), three, used[0],
            expire(size));
    }

    /** Processor time, all threads: the wheel has to wait for the delays to pass. */
    static double expire(int size) throws Exception {
        double cost = 0;
        for (int round = 0; round < 3; round++) {  // the last one counts
            cost = expireOnce(size);
        }
        return cost;
    }

    static double expireOnce(int size) throws Exception {
        try (SystemTimer timer = new SystemTimer("bench")) {
            Task.ran.set(0);
            for (int i = 0; i < size; i++) {
                timer.add(new Task(500 + CHANCE.nextInt(1_000)));
            }
            long before = cpuNs();
            while (Task.ran.get() < size) {
                timer.advanceClock(200);
            }
            return (cpuNs() - before) / (double) size;
        }
    }

    static double growWatches(int size, int keys, double[] used) throws Exception {
        DelayedOperationPurgatory<Operation> purgatory =
            new DelayedOperationPurgatory<>("bench", 0, 1000);
        int names = Math.max(size / 10, 10);
        List<Key> shared = new ArrayList<>();
        for (int i = 0; i < names; i++) {
            shared.add(new Key("key-" + i));
        }
        long before = usedBytes();
        for (int i = 0; i < size; i++) {
            List<Key> under = new ArrayList<>();
            for (int k = 0; k < keys; k++) {
                under.add(shared.get(CHANCE.nextInt(names)));
            }
            purgatory.tryCompleteElseWatch(new Operation(100 * delayMs()), under);
        }
        used[0] = (usedBytes() - before) / (double) size;
        List<List<Key>> own = new ArrayList<>();
        for (int i = 0; i < CHUNK; i++) {
            List<Key> under = new ArrayList<>();
            for (int k = 0; k < keys; k++) {
                under.add(new Key("own-" + i + "-" + k));
            }
            own.add(under);
        }
        double[] costs = new double[REPEATS];
        for (int round = -WARM_UP; round < REPEATS; round++) {
            long start = threadNs();
            for (List<Key> under : own) {
                Operation operation = new Operation(3_000_000);
                purgatory.tryCompleteElseWatch(operation, under);
                operation.ready = true;
                purgatory.checkAndComplete(under.get(0));
            }
            if (round >= 0) {
                costs[round] = (threadNs() - start) / (double) CHUNK;
            }
            for (List<Key> under : own) {
                for (Key key : under) {
                    purgatory.checkAndComplete(key);
                }
            }
        }
        purgatory.shutdown();
        return median(costs);
    }

    record Due(long atNs, Operation operation, Key key) implements Delayed {
        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(atNs - System.nanoTime(), TimeUnit.NANOSECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(atNs, ((Due) other).atNs);
        }
    }

    static void workload() throws Exception {
        int requests = 20_000;
        double rate = 5_000;
        double sigma = Math.log(60.0 / 20.0) / 0.6745;
        DelayedOperationPurgatory<Operation> purgatory =
            new DelayedOperationPurgatory<>("load", 0, 1000);
        List<Key> keys = new ArrayList<>();
        for (int i = 0; i < 10_000; i++) {
            keys.add(new Key("key-" + i));
        }
        DelayQueue<Due> due = new DelayQueue<>();
        Thread completer = new Thread(() -> {
            try {
                while (true) {
                    Due next = due.take();
                    next.operation().ready = true;
                    purgatory.checkAndComplete(next.key());
                }
            } catch (InterruptedException end) {
                return;
            }
        });
        completer.start();
        for (int round = 0; round < 3; round++) {  // the last one counts
            Operation.expired.set(0);
            long started = System.nanoTime();
            long cpu = cpuNs();
            double next = started;
            for (int i = 0; i < requests; i++) {
                next += -Math.log(1 - CHANCE.nextDouble()) / rate * 1e9;
                long wait = (long) next - System.nanoTime();
                if (wait > 0) {
                    TimeUnit.NANOSECONDS.sleep(wait);
                }
                Operation operation = new Operation(200);
                int first = CHANCE.nextInt(keys.size() - 3);
                purgatory.tryCompleteElseWatch(operation, keys.subList(first, first + 3));
                double latencyMs = Math.exp(Math.log(20.0) + sigma * CHANCE.nextGaussian());
                due.add(new Due(System.nanoTime() + (long) (latencyMs * 1e6), operation, keys.get(first)));
            }
            double elapsedS = (System.nanoTime() - started) / 1e9;
            due.clear();
            if (round == 2) {
                System.out.printf("{\"rate\": %.1f, \"cpu_us\": %.2f, \"expired\": %.4f}%n",
                    requests / elapsedS, (cpuNs() - cpu) / 1e3 / requests,
                    Operation.expired.get() / (double) requests);
            }
        }
        completer.interrupt();
        purgatory.shutdown();
    }

    static void precision() throws Exception {
        lateness(200);  // warm up
        double[] idle = lateness(1_000);
        Thread busy = new Thread(() -> {
            long spins = 0;
            while (!Thread.interrupted()) {
                spins++;
            }
        });
        busy.setDaemon(true);
        busy.start();
        double[] loaded = lateness(1_000);
        System.out.printf("{%s, %s}%n", percentiles("idle", idle), percentiles("busy", loaded));
    }

    static double[] lateness(int count) throws Exception {
        double[] lateMs = new double[count];
        AtomicInteger filled = new AtomicInteger();
        CountDownLatch left = new CountDownLatch(count);
        SystemTimer timer = new SystemTimer("punctual");
        for (int i = 0; i < count; i++) {
            long delay = 1 + CHANCE.nextInt(3_000);
            long dueNs = System.nanoTime() + delay * 1_000_000;
            timer.add(new TimerTask(delay) {
                @Override
                public void run() {
                    lateMs[filled.getAndIncrement()] = (System.nanoTime() - dueNs) / 1e6;
                    left.countDown();
                }
            });
        }
        while (left.getCount() > 0) {
            timer.advanceClock(200);
        }
        timer.close();
        Arrays.sort(lateMs);
        return lateMs;
    }

    static String percentiles(String state, double[] sorted) {
        return String.format("\"%1$s_p50\": %2$.3f, \"%1$s_p99\": %3$.3f, \"%1$s_max\": %4$.3f, \"%1$s_min\": %5$.3f",
            state, sorted[sorted.length / 2], sorted[sorted.length * 99 / 100],
            sorted[sorted.length - 1], sorted[0]);
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    static long threadNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    static long cpuNs() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }

    static long usedBytes() throws Exception {
        System.gc();
        Thread.sleep(200);
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
