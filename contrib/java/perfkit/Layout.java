package perfkit;

import java.util.HashMap;
import java.util.Map;

/** Where pk_options of pk/options.h has its members. */
final class Layout {
    private Layout() {}

    // In C's order: u and i have 4 bytes (i is signed), w and d 8 (d is a double), s is text, p another pointer.
    private static final String OPTIONS = """
        u.size s.trace_path s.report_path s.backends i.rank i.world_size u.warmup_steps w.memory_bytes u.history_steps
        s.capture s.capture_path s.windows_path s.metrics_path u.hang_seconds s.hang_command d.overhead_max s.costs
        s.goodput_path s.job_path p.log p.log_user u.log_level s.tuning""";

    private static final Map<String, Long> PLACES = new HashMap<>();
    static final int SIZE;

    static {
        long at = 0;
        for (String member : OPTIONS.split("\\s+")) {
            long bytes = "ui".indexOf(member.charAt(0)) >= 0 ? 4 : 8;
            at = (at + bytes - 1) / bytes * bytes;
            PLACES.put(member.substring(2), at);
            at += bytes;
        }
        SIZE = (int) ((at + 7) / 8 * 8);
    }

    /** Bytes from the beginning. */
    static long of(String member) {
        return PLACES.get(member);
    }
}
