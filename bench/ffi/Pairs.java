import java.util.Arrays;
import perfkit.Pk;

/** What a region costs from Java: medians of turns, by the wall's clock. The same loops, off and recorded. */
public class Pairs {
    static final int PAIRS = 9984;
    static final Pk.Region REGION = Pk.region("Java", Pk.Kind.OTHER);

    static void pairs() {
        for (int i = 0; i < PAIRS; i++) {
            try (var _ = REGION.begin()) {
                // nothing
            }
        }
    }

    static double measure(int rounds) {
        double[] taken = new double[rounds];
        for (int i = -200; i < rounds; i++) { // those before 0 are for the compiler
            if (Pk.started())
                Pk.flush();
            long start = System.nanoTime();
            pairs();
            if (i >= 0)
                taken[i] = (double) (System.nanoTime() - start) / PAIRS;
        }
        Arrays.sort(taken);
        return taken[rounds / 2];
    }

    public static void main(String[] arguments) {
        int rounds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 201;
        System.out.printf("Java, begin() and close()                      ns%n  off %41.2f%n", measure(rounds));
        try (var _ = new Pk.Options().tracePath("java.json").backends("none").start()) {
            System.out.printf("  recorded %36.2f%n%n", measure(rounds));
        }
    }
}
