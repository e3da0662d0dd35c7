package perfkit;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * perfkit for Java 22 and later: regions, steps and counters of a program, in one trace with those of its C.
 *
 * <pre>{@code
 * static final Pk.Region FORWARD = Pk.region("forward", Pk.Kind.COMPUTE);
 *
 * try (var _ = new Pk.Options().tracePath("run.json").reportPath("-").start()) {
 *     for (var batch : batches) {
 *         try (var _ = FORWARD.begin()) {     // until the end of the block; nothing is allocated
 *             ...
 *         }
 *         Pk.step(batch.size());                  // this step is over, the next one begins
 *     }
 * }
 * }</pre>
 *
 * <p>java.lang.foreign and nothing else: {@code java --enable-native-access=ALL-UNNAMED ...}. The library is the
 * libpk.so.1 that the process has already, unless $PK_LIBRARY names another one; else the one that the loader finds.
 *
 * <p>Threads: everything from any platform thread; a region begins and ends on one thread. Virtual threads change
 * theirs whenever they wait, so a region on one must not be open while it does.
 *
 * <p>Failure: recording never fails visibly. Control calls throw {@link Failure}.
 */
public final class Pk {
    private Pk() {}

    /** What a region's self time is spent on; the report of the steps adds up each. */
    public enum Kind { OTHER, COMPUTE, DATA, COMM, IO, WAIT }

    /** A control call that failed: its number, as in pk/status.h, and the sentence. */
    public static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;
        public final int status;

        Failure(int status, String message) {
            super(message);
            this.status = status;
        }
    }

    /** Is a session open in this process, whoever started it? */
    public static boolean started() {
        return Native.started();
    }

    // ---- regions ----

    /** An open region: the end of its block ends it. */
    public interface Scope extends AutoCloseable {
        /** Work done inside: throughput in report and trace. */
        void add(long bytes, long flops);

        @Override
        void close();
    }

    /** A named region, for the process's life. Keep it in a static final field: then a call is C's and little more. */
    public static final class Region implements Scope {
        private final MemorySegment at;

        private Region(MemorySegment at) {
            this.at = at;
        }

        /** Begins it; closing what is answered ends it. */
        public Scope begin() {
            Native.begin(at);
            return this;
        }

        @Override
        public void close() {
            Native.end(at);
        }

        /** This region ends and another one begins, with one clock read between; close that one. */
        public Scope next(Region to) {
            Native.next(at, to.at);
            return to;
        }

        @Override
        public void add(long bytes, long flops) {
            Native.add(at, bytes, flops);
        }

        /** A mark at this moment in the trace, under the region's name. */
        public void mark() {
            Native.mark(at);
        }

        /** What is special about the open call: an argument of it in the trace, under the key's name. */
        public void note(Region key, long value) {
            Native.note(at, key.at, value);
        }

        public void note(Region key, String value) {
            Native.call(arena -> {
                Native.NOTE_TEXT.invokeExact(at, key.at, arena.allocateFrom(value));
                return null;
            });
        }

        /** "attention[seq=512]": a region of its own, hence a distribution of its own, for each value. */
        public Region variant(String key, long value) {
            return Native.call(arena ->
                new Region((MemorySegment) Native.VARIANT.invokeExact(at, arena.allocateFrom(key), value)));
        }

        /** How long a call of it may take, in seconds, before the watchdog says that the program hangs. */
        public void limit(double seconds) {
            Native.call(arena -> {
                Native.LIMIT.invokeExact(at, seconds);
                return null;
            });
        }

        /** The distribution of all calls so far, on all threads; count() is 0 if there was none. */
        public Stats stats() {
            return new Stats(raw -> (int) Native.STATS.invokeExact(at, raw));
        }
    }

    /** The region of that name and kind. */
    public static Region region(String name, Kind kind) {
        return Native.call(arena ->
            new Region((MemorySegment) Native.NAMED.invokeExact(kind.ordinal(), arena.allocateFrom(name))));
    }

    /** A distribution of durations in ns (pk/stats.h). */
    public static final class Stats {
        private static final int ENOENT = -8;
        private static final int SIZE = 30344;
        private final MemorySegment raw = Arena.ofAuto().allocate(SIZE, 8);

        private interface Question {
            int ask(MemorySegment raw) throws Throwable;
        }

        private Stats(Question question) {
            raw.set(JAVA_INT, 0, SIZE);
            Native.control(arena -> {
                int status = question.ask(raw);
                return status == ENOENT ? 0 : status; // no sample yet: count is 0
            });
        }

        public long count() { return raw.get(JAVA_LONG, 8); }
        public long sum() { return raw.get(JAVA_LONG, 16); }
        public long min() { return raw.get(JAVA_LONG, 24); }
        public long max() { return raw.get(JAVA_LONG, 32); }
        public double mean() { return raw.get(JAVA_DOUBLE, 40); }
        public double stddev() { return raw.get(JAVA_DOUBLE, 48); }
        public long self() { return raw.get(JAVA_LONG, 56); }
        public long bytes() { return raw.get(JAVA_LONG, 64); }
        public long flops() { return raw.get(JAVA_LONG, 72); }

        /** The smallest duration that a share q of all samples does not exceed, within 1 %; 0 without samples. */
        public long quantile(double q) {
            return Native.call(arena -> (long) Native.QUANTILE.invokeExact(raw, q));
        }
    }

    // ---- steps, counters, threads ----

    /** Ends the current step of the training loop, in which there were so many samples, and begins the next. */
    public static void step(long items) {
        Native.step(items);
    }

    /** The next step begins here, not where the last one ended; what lies between is in none. */
    public static void stepBegin() {
        Native.stepBegin();
    }

    /** Of the step that runs: "evaluation", say, which has figures of its own. "": the usual kind. */
    public static void stepKind(String kind) {
        Native.call(arena -> {
            Native.STEP_KIND.invokeExact(arena.allocateFrom(kind));
            return null;
        });
    }

    /** Floating-point operations of the step that runs: what the model needs, and what was done (0: as many). */
    public static void stepFlops(double model, double hardware) {
        Native.stepFlops(model, hardware);
    }

    /** What the training waits for (pk/goodput.h): try (var _ = Pk.Phase.RESTORE.begin()) { ... } */
    public enum Phase implements AutoCloseable {
        STARTUP, COMPILE, CHECKPOINT, RESTORE, EVALUATION;

        public Phase begin() {
            Native.phase(true, ordinal() + 1);
            return this;
        }

        @Override public void close() { Native.phase(false, ordinal() + 1); }
    }

    /** A checkpoint is complete that has so many steps behind it. bytes: its size; 0: unknown. */
    public static void checkpointDone(long step, long bytes) { Native.checkpointDone(step, bytes); }

    /** The training has so many steps behind it, and the step that runs is the next one. */
    public static void trainingAt(long step) { Native.trainingAt(step); }

    /** A trace of what the history holds, and of so many steps more. */
    public static void capture(String reason, int steps) {
        Native.control(arena -> (int) Native.CAPTURE.invokeExact(arena.allocateFrom(reason), steps));
    }

    /** The distribution of the durations of all steps. */
    public static Stats stepStats() {
        return new Stats(raw -> (int) Native.STEP_STATS.invokeExact(raw));
    }

    /** A value over time. */
    public static final class Counter {
        private final MemorySegment at;

        private Counter(MemorySegment at) {
            this.at = at;
        }

        /** A point in the trace, a sample of the report's distribution. */
        public void set(double value) {
            Native.set(at, value);
        }
    }

    /** The counter of that name, for the process's life. */
    public static Counter counter(String name, String unit) {
        return Native.call(arena -> new Counter(
            (MemorySegment) Native.COUNTER.invokeExact(arena.allocateFrom(name), arena.allocateFrom(unit))));
    }

    /** Names the calling thread in trace and report. */
    public static void threadName(String name) {
        Native.call(arena -> {
            Native.THREAD_NAME.invokeExact(arena.allocateFrom(name));
            return null;
        });
    }

    // ---- sessions ----

    /**
     * What a session is to do: the members of pk_options in pk/options.h, whose manual is there, but for the log
     * function, which would call Java under the library's lock. What is not set comes from the environment
     * (PK_TRACE_PATH, ...).
     */
    public static final class Options {
        private final Arena arena = Arena.ofAuto();
        private final MemorySegment raw = arena.allocate(Layout.SIZE, 8);

        public Options() {
            set("size", Layout.SIZE);
        }

        private Options set(String member, String value) {
            raw.set(ADDRESS, Layout.of(member), arena.allocateFrom(value));
            return this;
        }

        private Options set(String member, int value) {
            raw.set(JAVA_INT, Layout.of(member), value);
            return this;
        }

        private Options set(String member, long value) {
            raw.set(JAVA_LONG, Layout.of(member), value);
            return this;
        }

        private Options set(String member, double value) {
            raw.set(JAVA_DOUBLE, Layout.of(member), value);
            return this;
        }

        public Options tracePath(String text) { return set("trace_path", text); }
        public Options reportPath(String text) { return set("report_path", text); }
        public Options backends(String text) { return set("backends", text); }
        public Options rank(int number) { return set("rank", number); }
        public Options worldSize(int number) { return set("world_size", number); }
        public Options warmupSteps(int number) { return set("warmup_steps", number); }
        public Options memoryBytes(long number) { return set("memory_bytes", number); }
        public Options historySteps(int number) { return set("history_steps", number); }
        public Options capture(String text) { return set("capture", text); }
        public Options capturePath(String text) { return set("capture_path", text); }
        public Options windowsPath(String text) { return set("windows_path", text); }
        public Options metricsPath(String text) { return set("metrics_path", text); }
        public Options hangSeconds(int number) { return set("hang_seconds", number); }
        public Options hangCommand(String text) { return set("hang_command", text); }
        public Options overheadMax(double share) { return set("overhead_max", share); }
        public Options costs(String text) { return set("costs", text); }
        public Options goodputPath(String text) { return set("goodput_path", text); }
        public Options jobPath(String text) { return set("job_path", text); }
        public Options logLevel(int number) { return set("log_level", number); }
        public Options tuning(String text) { return set("tuning", text); }

        /** Begins a session, which ends when it is closed. */
        public Session start() {
            Native.control(arena -> (int) Native.START.invokeExact(raw));
            return new Session();
        }
    }

    /** An open session. */
    public static final class Session implements AutoCloseable {
        private Session() {}

        /** Ends the session and writes trace and report. Statistics stay readable until the next one. */
        @Override
        public void close() {
            Native.control(arena -> (int) Native.STOP.invokeExact());
        }
    }

    /** Everything recorded before this call is in the trace file when it returns. */
    public static void flush() {
        Native.control(arena -> (int) Native.FLUSH.invokeExact());
    }

    /** Record accounting (pk_counts). */
    public record Counts(int threads, long begun, long recorded, long written, long dropped, long unbalanced,
                         long strayEnds, long steps) {}

    /** During a session and after it. */
    public static Counts counts() {
        MemorySegment raw = Arena.ofAuto().allocate(128, 8);
        raw.set(JAVA_INT, 0, 128);
        Native.control(arena -> (int) Native.COUNTS.invokeExact(raw));
        return new Counts(raw.get(JAVA_INT, 4), raw.get(JAVA_LONG, 8), raw.get(JAVA_LONG, 16), raw.get(JAVA_LONG, 24),
                          raw.get(JAVA_LONG, 32), raw.get(JAVA_LONG, 40), raw.get(JAVA_LONG, 56),
                          raw.get(JAVA_LONG, 96));
    }

    /** What else may record: whether it does, its version, and the reason. */
    public record Backend(boolean live, String version, String reason) {}

    /** "cuda", "cupti", "nvtx", "nccl" or "nvml". */
    public static Backend backend(String name) {
        MemorySegment raw = Arena.ofAuto().allocate(232, 8);
        raw.set(JAVA_INT, 0, 232);
        Native.control(arena -> (int) Native.BACKEND.invokeExact(arena.allocateFrom(name), raw));
        return new Backend(raw.get(JAVA_INT, 4) != 0, raw.getString(8), raw.getString(40));
    }

    /** The version of the library in use. */
    public static String version() {
        return Native.version();
    }
}
