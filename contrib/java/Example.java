import java.util.concurrent.ArrayBlockingQueue;
import perfkit.Pk;

/**
 * A training loop under perfkit: a thread that loads, phases, a counter, steps.
 *
 *     javac -d . perfkit/Pk.java Example.java && java --enable-native-access=ALL-UNNAMED Example
 */
public class Example {
    static final int STEPS = 50;
    static final Pk.Region LOAD = Pk.region("load", Pk.Kind.DATA);
    static final Pk.Region WAIT = Pk.region("wait for batch", Pk.Kind.WAIT);
    static final Pk.Region FORWARD = Pk.region("forward", Pk.Kind.COMPUTE);
    static final Pk.Region BACKWARD = Pk.region("backward", Pk.Kind.COMPUTE);
    static final Pk.Counter LOSS = Pk.counter("loss", "");

    static double[] makeBatch(int step) {
        try (var scope = LOAD.begin()) {
            double[] batch = new double[1 << 12];
            for (int i = 0; i < batch.length; i++)
                batch[i] = i * step;
            scope.add(8L * batch.length, 0);
            return batch;
        }
    }

    static double sum(double[] batch) {
        try (var _ = FORWARD.begin()) {
            double sum = 0;
            for (double x : batch)
                sum += x * x;
            return sum;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        var batches = new ArrayBlockingQueue<double[]>(4);
        try (var _ = new Pk.Options().tracePath("example.json").reportPath("-").start()) {
            Thread.ofPlatform().name("loader").start(() -> {
                try {
                    Pk.threadName("loader");
                    for (int step = 0; step < STEPS; step++)
                        batches.put(makeBatch(step));
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            });
            for (int step = 0; step < STEPS; step++) {
                double[] batch;
                try (var _ = WAIT.begin()) {
                    batch = batches.take();
                }
                LOSS.set(sum(batch));
                try (var _ = BACKWARD.begin()) {
                    Thread.sleep(1);
                }
                Pk.step(batch.length);
            }
            var stats = FORWARD.stats();
            System.out.printf("forward: %d calls, p99 %.1f us%n", stats.count(), stats.quantile(0.99) / 1e3);
        }
    }
}
