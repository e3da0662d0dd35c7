package perfkit;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;

/** libpk.so's functions. Recording ones test the gate here, as C's inline functions do, and call what those call. */
@SuppressWarnings("restricted")
final class Native {
    private Native() {}

    private static final Linker LINKER = Linker.nativeLinker();
    private static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup(library(), Arena.global());
    private static final VarHandle INT = JAVA_INT.varHandle();
    private static final MemorySegment GATE = symbol("pk_gate_").reinterpret(4);

    // Short and without a call back into Java: such calls need no change of the thread's state.
    private static final MethodHandle BEGIN = recording("pk_region_begin_on_", ADDRESS);
    private static final MethodHandle END = recording("pk_region_end_on_", ADDRESS);
    private static final MethodHandle NEXT = recording("pk_region_next_on_", ADDRESS, ADDRESS);
    private static final MethodHandle ADD = recording("pk_region_add_on_", ADDRESS, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle NOTE = recording("pk_region_note_on_", ADDRESS, ADDRESS, JAVA_LONG);
    static final MethodHandle NOTE_TEXT =
        LINKER.downcallHandle(symbol("pk_region_note_text"), FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS));
    private static final MethodHandle MARK = recording("pk_region_mark_on_", ADDRESS);
    private static final MethodHandle STEP = recording("pk_step_on_", JAVA_LONG);
    private static final MethodHandle STEP_BEGIN = recording("pk_step_begin_on_");
    static final MethodHandle STEP_KIND = LINKER.downcallHandle(symbol("pk_step_kind"), FunctionDescriptor.ofVoid(ADDRESS));
    private static final MethodHandle STEP_FLOPS = recording("pk_step_add_flops_on_", JAVA_DOUBLE, JAVA_DOUBLE);
    private static final MethodHandle PHASE_BEGIN = recording("pk_phase_begin_on_", JAVA_INT);
    private static final MethodHandle PHASE_END = recording("pk_phase_end_on_", JAVA_INT);
    private static final MethodHandle CHECKPOINT_DONE = recording("pk_checkpoint_done_on_", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle TRAINING_AT = recording("pk_training_set_step_on_", JAVA_LONG);
    private static final MethodHandle SET = recording("pk_counter_set_on_", ADDRESS, JAVA_DOUBLE);
    static final MethodHandle THREAD_NAME =
        LINKER.downcallHandle(symbol("pk_thread_set_name"), FunctionDescriptor.ofVoid(ADDRESS));
    static final MethodHandle NAMED = control("pk_region_named_of", ADDRESS, JAVA_INT, ADDRESS);
    static final MethodHandle VARIANT = control("pk_region_variant", ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
    static final MethodHandle LIMIT =
        LINKER.downcallHandle(symbol("pk_region_set_limit"), FunctionDescriptor.ofVoid(ADDRESS, JAVA_DOUBLE));
    static final MethodHandle CAPTURE = control("pk_capture", JAVA_INT, ADDRESS, JAVA_INT);
    static final MethodHandle COUNTER = control("pk_counter_named", ADDRESS, ADDRESS, ADDRESS);
    static final MethodHandle QUANTILE = control("pk_stats_quantile", JAVA_LONG, ADDRESS, JAVA_DOUBLE);
    static final MethodHandle STATS = control("pk_region_stats", JAVA_INT, ADDRESS, ADDRESS);
    static final MethodHandle STEP_STATS = control("pk_step_stats", JAVA_INT, ADDRESS);
    static final MethodHandle START = control("pk_start", JAVA_INT, ADDRESS);
    static final MethodHandle FLUSH = control("pk_flush", JAVA_INT);
    static final MethodHandle STOP = control("pk_stop", JAVA_INT);
    static final MethodHandle COUNTS = control("pk_get_counts", JAVA_INT, ADDRESS);
    static final MethodHandle BACKEND = control("pk_backend_status", JAVA_INT, ADDRESS, ADDRESS);
    private static final MethodHandle ERROR = control("pk_error_message", ADDRESS);
    private static final MethodHandle VERSION = control("pk_version", ADDRESS);

    private static String library() {
        String path = System.getenv("PK_LIBRARY");
        return path != null && !path.isEmpty() ? path : "libpk.so.1";
    }

    private static MemorySegment symbol(String name) {
        return LIBRARY.find(name).orElseThrow(() -> new UnsatisfiedLinkError(library() + " has no " + name));
    }

    private static MethodHandle recording(String name, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.ofVoid(arguments), Linker.Option.critical(false));
    }

    private static MethodHandle control(String name, MemoryLayout result, MemoryLayout... arguments) {
        return LINKER.downcallHandle(symbol(name), FunctionDescriptor.of(result, arguments));
    }

    /** A call of C; the exception is what invokeExact declares, and C throws none. */
    interface Call<T> {
        T make(Arena arena) throws Throwable;
    }

    static <T> T call(Call<T> call) {
        try (Arena arena = Arena.ofConfined()) {
            return call.make(arena);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    /** A control call, whose status is an exception unless it is 0. */
    static void control(Call<Integer> call) {
        int status = call(call);
        if (status != 0)
            throw new Pk.Failure(status, call(arena -> text((MemorySegment) ERROR.invokeExact())));
    }

    static String version() {
        return call(arena -> text((MemorySegment) VERSION.invokeExact()));
    }

    private static String text(MemorySegment at) {
        return at.reinterpret(Long.MAX_VALUE).getString(0);
    }

    private static RuntimeException unexpected(Throwable thrown) {
        if (thrown instanceof Error error)
            throw error;
        return thrown instanceof RuntimeException known ? known : new IllegalStateException(thrown);
    }

    static boolean started() {
        return (int) INT.getOpaque(GATE, 0L) != 0;
    }

    static void begin(MemorySegment region) {
        try {
            if (started())
                BEGIN.invokeExact(region);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void end(MemorySegment region) {
        try {
            if (started())
                END.invokeExact(region);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void next(MemorySegment from, MemorySegment to) {
        try {
            if (started())
                NEXT.invokeExact(from, to);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void add(MemorySegment region, long bytes, long flops) {
        try {
            if (started())
                ADD.invokeExact(region, bytes, flops);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void note(MemorySegment region, MemorySegment key, long value) {
        try {
            if (started())
                NOTE.invokeExact(region, key, value);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void mark(MemorySegment region) {
        try {
            if (started())
                MARK.invokeExact(region);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void step(long items) {
        try {
            if (started())
                STEP.invokeExact(items);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void stepBegin() {
        try {
            if (started())
                STEP_BEGIN.invokeExact();
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void stepFlops(double model, double hardware) {
        try {
            if (started())
                STEP_FLOPS.invokeExact(model, hardware);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void phase(boolean begins, int phase) {
        try {
            if (started() && begins)
                PHASE_BEGIN.invokeExact(phase);
            else if (started())
                PHASE_END.invokeExact(phase);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void checkpointDone(long step, long bytes) {
        try {
            if (started())
                CHECKPOINT_DONE.invokeExact(step, bytes);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void trainingAt(long step) {
        try {
            if (started())
                TRAINING_AT.invokeExact(step);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }

    static void set(MemorySegment counter, double value) {
        try {
            if (started())
                SET.invokeExact(counter, value);
        } catch (Throwable thrown) {
            throw unexpected(thrown);
        }
    }
}
