! pk.f90 - perfkit for Fortran: regions, steps and counters of a program, in one trace with those of its C.
!
!     use pk
!     type(pk_region) :: forward
!
!     call pk_start(trace_path="run.json", report_path="-")
!     forward = pk_region_named("forward", PK_COMPUTE)     ! once; the same name is the same region
!     do i = 1, 1000
!         call pk_region_begin(forward)                    ! the library's own function: no wrapper between
!         ...
!         call pk_region_end(forward)
!         call pk_step(32_c_int64_t)                       ! this step is over, the next one begins
!     end do
!     call pk_stop()
!
!     gfortran -c pk.f90 && gfortran run.f90 pk.o $(pkg-config --cflags --libs pk)
!
! Compile this file with your own compiler, as any module. It holds declarations of the C functions, whose manual
! is in pk/*.h, and wrappers for those that take text.
!
! Text:    trailing blanks do not count; "" is an option that is not set.
! Threads: everything from any thread (OpenMP too); a region begins and ends on the same one.
! Failure: recording never fails visibly. The control calls have an optional status, PK_OK or an error; pk_error_text()
!          has the sentence.
! Regions: a pk_region that was not assigned from pk_region_named is no region: do not begin it.
module pk
    use, intrinsic :: iso_c_binding
    implicit none
    private

    ! What a region's self time is spent on.
    enum, bind(c)
        enumerator :: PK_OTHER = 0, PK_COMPUTE = 1, PK_DATA = 2, PK_COMM = 3, PK_IO = 4, PK_WAIT = 5
    end enum
    enum, bind(c)
        enumerator :: PK_OK = 0, PK_EINVAL = -1, PK_EBUSY = -2, PK_EOFF = -3, PK_ENOMEM = -4, PK_EIO = -5, &
                      PK_ENOSPC = -6, PK_EACCES = -7, PK_ENOENT = -8, PK_ETHREAD = -9, PK_ENOTSUP = -10
    end enum
    public :: PK_OTHER, PK_COMPUTE, PK_DATA, PK_COMM, PK_IO, PK_WAIT
    public :: PK_OK, PK_EINVAL, PK_EBUSY, PK_EOFF, PK_ENOMEM, PK_EIO, PK_ENOSPC, PK_EACCES, PK_ENOENT, PK_ETHREAD, &
              PK_ENOTSUP

    ! Handles: one pointer each, which is what C's functions take.
    type, bind(c), public :: pk_region
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, bind(c), public :: pk_counter
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! A distribution of durations in ns; pk_stats of pk/stats.h. 30 KiB.
    type, bind(c), public :: pk_stats
        integer(c_int32_t) :: size = 30344, reserved = 0
        integer(c_int64_t) :: count = 0, sum = 0, min = 0, max = 0
        real(c_double) :: mean = 0, stddev = 0
        integer(c_int64_t) :: self = 0, bytes = 0, flops = 0
        real(c_double) :: unit_ns = 0
        integer(c_int64_t) :: untimed = 0
        real(c_double) :: sampling_error = 0
        integer(c_int64_t) :: spare(4) = 0, buckets(59 * 64) = 0
    end type

    ! Record accounting; pk_counts of pk/session.h.
    type, bind(c), public :: pk_counts
        integer(c_int32_t) :: size = 152, threads = 0
        integer(c_int64_t) :: begun = 0, recorded = 0, written = 0, dropped = 0, unbalanced = 0, too_deep = 0, &
                              stray_ends = 0, points = 0, points_dropped = 0, unwritten = 0, regions = 0, steps = 0, &
                              memory_bytes = 0, trace_bytes = 0, other_starts = 0, not_finite = 0, untimed = 0, untraced = 0
    end type

    type, bind(c) :: options
        integer(c_int32_t) :: size = 280, ring_records = 0
        type(c_ptr) :: trace_path = c_null_ptr, report_path = c_null_ptr
        integer(c_int64_t) :: memory_bytes = 0
        type(c_ptr) :: backends = c_null_ptr, arena_path = c_null_ptr, clock = c_null_ptr
        integer(c_int64_t) :: trace_max_bytes = 0
        integer(c_int32_t) :: flush_ms = 0, report_threads = 0, warmup_steps = 0, rank = 0, world_size = 0, log_level = 0
        type(c_ptr) :: log = c_null_ptr, log_user = c_null_ptr, cupti_steps = c_null_ptr
        integer(c_int32_t) :: cupti_graph_nodes = 0, nvtx_consume = 0
        type(c_ptr) :: nvtx_shim = c_null_ptr, gpu_capture = c_null_ptr
        integer(c_int32_t) :: cupti_sync_events = 0
        integer(c_int64_t) :: history_bytes = 0
        integer(c_int32_t) :: history_steps = 0, captures_per_hour = 0
        integer(c_int64_t) :: capture_bytes_per_hour = 0
        type(c_ptr) :: capture = c_null_ptr, capture_path = c_null_ptr, windows_path = c_null_ptr
        integer(c_int32_t) :: window_steps = 0, window_seconds = 0
        integer(c_int64_t) :: windows_max_bytes = 0
        type(c_ptr) :: metrics_path = c_null_ptr
        integer(c_int32_t) :: metrics_seconds = 0, hang_seconds = 0
        type(c_ptr) :: hang_command = c_null_ptr, collector = c_null_ptr, collector_cpus = c_null_ptr
        integer(c_int64_t) :: trace_rotate_bytes = 0
        integer(c_int32_t) :: trace_keep = 0
        type(c_ptr) :: machine_path = c_null_ptr
        real(c_double) :: overhead_max = 0; type(c_ptr) :: goodput_path = c_null_ptr, costs = c_null_ptr, peak = c_null_ptr
    end type
    type, bind(c) :: backend_info
        integer(c_int32_t) :: size = 232, live = 0
        character(kind=c_char) :: version(32) = c_null_char, reason(192) = c_null_char
    end type

    public :: pk_start, pk_flush, pk_stop, pk_error_text, pk_version_text, pk_get_counts, pk_backend_live
    public :: pk_region_named, pk_region_variant, pk_region_begin, pk_region_end, pk_region_next, pk_region_add, &
              pk_region_mark, pk_region_limit, pk_region_stats, pk_stats_quantile
    public :: pk_step, pk_step_begin, pk_step_kind, pk_step_flops, pk_step_stats, pk_counter_named, pk_counter_set, pk_thread_name
    public :: pk_gpu_begin, pk_gpu_end, pk_region_gpu_stats

    ! ---- as they are in C ----
    interface
        subroutine pk_region_begin(region) bind(c, name="pk_region_begin")
            import :: pk_region
            type(pk_region), value :: region
        end subroutine
        subroutine pk_region_end(region) bind(c, name="pk_region_end")
            import :: pk_region
            type(pk_region), value :: region
        end subroutine

        subroutine pk_region_next(from, to) bind(c, name="pk_region_next")
            import :: pk_region
            type(pk_region), value :: from, to
        end subroutine

        subroutine pk_region_add(region, bytes, flops) bind(c, name="pk_region_add")
            import :: pk_region, c_int64_t
            type(pk_region), value :: region
            integer(c_int64_t), value :: bytes, flops
        end subroutine
        subroutine pk_region_mark(region) bind(c, name="pk_region_mark")
            import :: pk_region
            type(pk_region), value :: region
        end subroutine
        ! How long a call of it may take, in seconds, before the watchdog says that the program hangs.
        subroutine pk_region_limit(region, seconds) bind(c, name="pk_region_limit")
            import :: pk_region, c_double
            type(pk_region), value :: region
            real(c_double), value :: seconds
        end subroutine

        integer(c_int) function pk_region_stats(region, stats) bind(c, name="pk_region_stats")
            import :: pk_region, pk_stats, c_int
            type(pk_region), value :: region
            type(pk_stats), intent(inout) :: stats
        end function

        integer(c_int) function pk_region_gpu_stats(region, stats) bind(c, name="pk_region_gpu_stats")
            import :: pk_region, pk_stats, c_int
            type(pk_region), value :: region
            type(pk_stats), intent(inout) :: stats
        end function

        integer(c_int) function pk_step_stats(stats) bind(c, name="pk_step_stats")
            import :: pk_stats, c_int
            type(pk_stats), intent(inout) :: stats
        end function

        ! ns that a share q of all calls does not exceed, within 1 %.
        integer(c_int64_t) function pk_stats_quantile(stats, q) bind(c, name="pk_stats_quantile")
            import :: pk_stats, c_int64_t, c_double
            type(pk_stats), intent(in) :: stats
            real(c_double), value :: q
        end function

        subroutine pk_step(items) bind(c, name="pk_step")
            import :: c_int64_t
            integer(c_int64_t), value :: items
        end subroutine

        ! The next step begins here, not where the last one ended; what lies between is in none.
        subroutine pk_step_begin() bind(c, name="pk_step_begin")
        end subroutine

        ! Operations of the step that runs: what the model needs, and what was done (0: as many).
        subroutine pk_step_flops(model, hardware) bind(c, name="pk_step_flops")
            import :: c_double
            real(c_double), value :: model, hardware
        end subroutine

        subroutine step_kind_c(kind) bind(c, name="pk_step_kind")
            import :: c_char
            character(kind=c_char), intent(in) :: kind(*)
        end subroutine

        subroutine pk_counter_set(counter, number) bind(c, name="pk_counter_set")
            import :: pk_counter, c_double
            type(pk_counter), value :: counter
            real(c_double), value :: number
        end subroutine

        ! stream: a cudaStream_t; c_null_ptr for the legacy default stream.
        subroutine pk_gpu_begin(region, stream) bind(c, name="pk_gpu_begin")
            import :: pk_region, c_ptr
            type(pk_region), value :: region
            type(c_ptr), value :: stream
        end subroutine
        subroutine pk_gpu_end(region, stream) bind(c, name="pk_gpu_end")
            import :: pk_region, c_ptr
            type(pk_region), value :: region
            type(c_ptr), value :: stream
        end subroutine

        ! PK_OK, or PK_EOFF if there was no session.
        integer(c_int) function pk_get_counts(counts) bind(c, name="pk_get_counts")
            import :: pk_counts, c_int
            type(pk_counts), intent(inout) :: counts
        end function

        integer(c_int) function start_c(wanted) bind(c, name="pk_start")
            import :: options, c_int
            type(options), intent(in) :: wanted
        end function
        integer(c_int) function flush_c() bind(c, name="pk_flush")
            import :: c_int
        end function
        integer(c_int) function stop_c() bind(c, name="pk_stop")
            import :: c_int
        end function
        type(c_ptr) function error_c() bind(c, name="pk_error_message")
            import :: c_ptr
        end function
        type(c_ptr) function version_c() bind(c, name="pk_version")
            import :: c_ptr
        end function

        integer(c_int) function backend_c(name, info) bind(c, name="pk_backend_status")
            import :: backend_info, c_char, c_int
            character(kind=c_char), intent(in) :: name(*)
            type(backend_info), intent(inout) :: info
        end function

        type(pk_region) function named_c(kind, name) bind(c, name="pk_region_named_of")
            import :: pk_region, c_int, c_char
            integer(c_int), value :: kind
            character(kind=c_char), intent(in) :: name(*)
        end function

        type(pk_region) function variant_c(region, key, number) bind(c, name="pk_region_variant")
            import :: pk_region, c_char, c_int64_t
            type(pk_region), value :: region
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int64_t), value :: number
        end function

        type(pk_counter) function counter_c(name, unit) bind(c, name="pk_counter_named")
            import :: pk_counter, c_char
            character(kind=c_char), intent(in) :: name(*), unit(*)
        end function

        subroutine thread_name_c(name) bind(c, name="pk_thread_name")
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine

        integer(c_size_t) function strlen(text) bind(c, name="strlen")
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
        end function
    end interface

contains

    ! Begins a session. What is not given comes from the environment (PK_TRACE_PATH, ...); pk/session.h has the meaning.
    subroutine pk_start(trace_path, report_path, backends, ring_records, memory_bytes, warmup_steps, rank, world_size, &
                        status)
        character(len=*), intent(in), optional, target :: trace_path, report_path, backends
        integer, intent(in), optional :: ring_records, warmup_steps, rank, world_size
        integer(c_int64_t), intent(in), optional :: memory_bytes
        integer(c_int), intent(out), optional :: status
        character(len=:), allocatable, target :: trace, report, names
        type(options) :: wanted
        call set_text(trace_path, trace, wanted%trace_path)
        call set_text(report_path, report, wanted%report_path)
        call set_text(backends, names, wanted%backends)
        if (present(ring_records)) wanted%ring_records = int(ring_records, c_int32_t)
        if (present(memory_bytes)) wanted%memory_bytes = memory_bytes
        if (present(warmup_steps)) wanted%warmup_steps = int(warmup_steps, c_int32_t)
        if (present(rank)) wanted%rank = int(rank, c_int32_t)
        if (present(world_size)) wanted%world_size = int(world_size, c_int32_t)
        call answer(start_c(wanted), status)
    end subroutine

    ! Everything recorded before this call is in the trace file when it returns.
    subroutine pk_flush(status)
        integer(c_int), intent(out), optional :: status
        call answer(flush_c(), status)
    end subroutine

    ! Ends the session and writes trace and report. Statistics stay readable until the next pk_start.
    subroutine pk_stop(status)
        integer(c_int), intent(out), optional :: status
        call answer(stop_c(), status)
    end subroutine

    ! One sentence about the last control call that failed on this thread.
    function pk_error_text() result(text)
        character(len=:), allocatable :: text
        text = text_at(error_c())
    end function

    function pk_version_text() result(text)
        character(len=:), allocatable :: text
        text = text_at(version_c())
    end function

    ! Does "cuda", "cupti", "nvtx", "nccl" or "nvml" record? Why not, or what it does, in words.
    logical function pk_backend_live(name, reason)
        character(len=*), intent(in) :: name
        character(len=:), allocatable, intent(out), optional :: reason
        type(backend_info) :: info
        integer(c_int) :: status
        integer :: i
        status = backend_c(c_text(name), info)
        pk_backend_live = status == PK_OK .and. info%live /= 0
        if (.not. present(reason)) return
        reason = ""
        do i = 1, size(info%reason)
            if (info%reason(i) == c_null_char) exit
            reason = reason // info%reason(i)
        end do
        if (status /= PK_OK) reason = pk_error_text()
    end function

    ! The region of that name and kind, for the process's life.
    type(pk_region) function pk_region_named(name, kind)
        character(len=*), intent(in) :: name
        integer(c_int), intent(in), optional :: kind
        integer(c_int) :: which
        which = PK_OTHER
        if (present(kind)) which = kind
        pk_region_named = named_c(which, c_text(name))
    end function

    ! "solve[n=512]": a region of its own, hence a distribution of its own, for each value.
    type(pk_region) function pk_region_variant(region, key, number)
        type(pk_region), intent(in) :: region
        character(len=*), intent(in) :: key
        integer, intent(in) :: number
        pk_region_variant = variant_c(region, c_text(key), int(number, c_int64_t))
    end function

    ! Of the step that runs: "evaluation", say, which has figures of its own. "": the usual kind.
    subroutine pk_step_kind(kind)
        character(len=*), intent(in) :: kind
        call step_kind_c(c_text(kind))
    end subroutine

    ! The counter of that name, for the process's life.
    type(pk_counter) function pk_counter_named(name, unit)
        character(len=*), intent(in) :: name
        character(len=*), intent(in), optional :: unit
        if (present(unit)) then
            pk_counter_named = counter_c(c_text(name), c_text(unit))
        else
            pk_counter_named = counter_c(c_text(name), c_text(""))
        end if
    end function

    ! Names the calling thread in trace and report.
    subroutine pk_thread_name(name)
        character(len=*), intent(in) :: name
        call thread_name_c(c_text(name))
    end subroutine

    ! ---- below: text, and answers ----

    pure function c_text(text)
        character(len=*), intent(in) :: text
        character(kind=c_char, len=:), allocatable :: c_text
        c_text = trim(text) // c_null_char
    end function

    subroutine set_text(given, kept, where)
        character(len=*), intent(in), optional :: given
        character(len=:), allocatable, target, intent(inout) :: kept
        type(c_ptr), intent(inout) :: where
        if (.not. present(given)) return
        kept = c_text(given)
        if (len(kept) > 1) where = c_loc(kept)
    end subroutine

    function text_at(address) result(text)
        type(c_ptr), intent(in) :: address
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: characters(:)
        integer :: i
        call c_f_pointer(address, characters, [strlen(address)])
        allocate (character(len=size(characters)) :: text)
        do i = 1, size(characters)
            text(i:i) = characters(i)
        end do
    end function

    subroutine answer(code, status)
        integer(c_int), intent(in) :: code
        integer(c_int), intent(out), optional :: status
        if (present(status)) status = code
    end subroutine
end module
