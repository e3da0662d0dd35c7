package perfkit;

import java.util.HashMap;
import java.util.Map;

/** Where pk_options of pk/options.h has its members. */
final class Layout {
    private Layout() {}

    // In C's order: u and i have 4 bytes (i is signed), w and d 8 (d is a double), s is text, p another pointer.
    private static final String OPTIONS = """
        u.size u.ring_records s.trace_path s.report_path w.memory_bytes s.backends s.arena_path s.clock
        w.trace_max_bytes u.flush_ms u.report_threads u.warmup_steps i.rank i.world_size u.log_level p.log p.log_user
        s.cupti_steps u.cupti_graph_nodes u.nvtx_consume s.nvtx_shim s.gpu_capture u.cupti_sync_events w.history_bytes
        u.history_steps u.captures_per_hour w.capture_bytes_per_hour s.capture s.capture_path s.windows_path
        u.window_steps u.window_seconds w.windows_max_bytes s.metrics_path u.metrics_seconds u.hang_seconds
        s.hang_command s.collector s.collector_cpus w.trace_rotate_bytes u.trace_keep s.machine_path d.overhead_max
        s.goodput_path s.costs s.peak s.job_path""";

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
