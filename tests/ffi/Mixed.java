import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import perfkit.Pk;

/** What each mixed program does, in Java: see seen.py. */
public class Mixed {
    static final Pk.Region OUTER = Pk.region("outer", Pk.Kind.COMPUTE);
    static final Pk.Region BACK = Pk.region("back", Pk.Kind.IO);

    static void calledBack() {
        try (var _ = BACK.begin()) {
            expect(Pk.started(), "started");
        }
    }

    static void expect(boolean fine, String what) {
        if (!fine)
            throw new AssertionError(what);
    }

    static int failure(Runnable call) {
        try {
            call.run();
        } catch (Pk.Failure failure) {
            expect(!failure.getMessage().isEmpty(), "a sentence");
            return failure.status;
        }
        return 0;
    }

    static void work(MethodHandle inner, MemorySegment callback) throws Throwable {
        Pk.Counter number = Pk.counter("number", "pieces");
        for (int i = 0; i < 10; i++) {
            try (var scope = OUTER.begin()) {
                scope.add(100, 10);
                inner.invokeExact(callback);
                number.set(i);
                Pk.step(32);
            }
        }
        Pk.Region second = Pk.region("second", Pk.Kind.OTHER);
        try (var _ = OUTER.variant("n", 3).begin()) {
            Pk.Region first = Pk.region("first", Pk.Kind.OTHER);
            first.begin();
            try (var _ = first.next(second)) {
                Pk.Region moment = Pk.region("moment", Pk.Kind.OTHER);
                second.note(first, 7);
                second.note(moment, "seven");
                moment.mark();
            }
        }
    }

    static void elsewhere() {
        Pk.threadName("second thread");
        try (var _ = Pk.region("elsewhere", Pk.Kind.OTHER).begin()) {
            expect(Pk.started(), "started");
        }
    }

    static void figures() {
        Pk.Stats stats = OUTER.stats();
        expect(stats.count() == 10 && stats.bytes() == 1000 && stats.flops() == 100, "sums");
        expect(stats.quantile(0.5) >= stats.min() && stats.quantile(0.5) <= stats.max(), "quantile");
        expect(stats.mean() >= stats.min() && stats.sum() >= stats.max() && stats.self() <= stats.sum(), "order");
        expect(Pk.stepStats().count() == 10, "steps");
        expect(Pk.region("never", Pk.Kind.OTHER).stats().count() == 0, "never");
        expect(!Pk.backend("cuda").live() && !Pk.backend("cuda").reason().isEmpty(), "cuda");
        expect(failure(() -> Pk.backend("nonsense")) == -8, "no such backend");
        expect(failure(() -> new Pk.Options().start()) == -2, "a second start");
        OUTER.limit(600);
        expect(failure(() -> Pk.capture("there is no history", 2)) == -3, "a capture");
        expect(Pk.version().length() >= 5, "version");
    }

    public static void main(String[] arguments) throws Throwable {
        Linker linker = Linker.nativeLinker();
        MethodHandle inner = linker.downcallHandle(
            SymbolLookup.libraryLookup("libinner.so", Arena.global()).find("inner_work").orElseThrow(),
            FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));
        MemorySegment callback = linker.upcallStub(
            MethodHandles.lookup().findStatic(Mixed.class, "calledBack", MethodType.methodType(void.class)),
            FunctionDescriptor.ofVoid(), Arena.global());
        expect(!Pk.started(), "off");
        try (var _ = new Pk.Options().tracePath("mixed.json").backends("none").rank(1).worldSize(2).start()) {
            Pk.stepBegin();
            Pk.stepKind("");
            try (var _ = Pk.Phase.RESTORE.begin()) {
                Pk.trainingAt(100);
            }
            work(inner, callback);
            try (var _ = Pk.Phase.CHECKPOINT.begin()) {
                Pk.checkpointDone(105, 4096);
            }
            Thread thread = Thread.ofPlatform().start(Mixed::elsewhere);
            thread.join();
            figures();
            Pk.flush();
        }
        Pk.Counts counts = Pk.counts();
        expect(counts.begun() == 34 && counts.recorded() == 34 && counts.unbalanced() == 0, counts.toString());
        expect(counts.steps() == 10 && counts.strayEnds() == 0, counts.toString());
        try (var _ = new Pk.Options().historySteps(4).capturePath("kept-%s.json").tuning("history_bytes=1M,peak=fp64").start()) {
            Pk.step(1);
            Pk.capture("asked", 1);
            Pk.step(1);
        }
    }
}
