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
! Compile this file with your own compiler, as any module; it takes in pk_c.inc beside it. They hold declarations of the
! C functions, whose manual is in pk/*.h, and wrappers for those that take text.
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

    ! A text for C, which stays where it is.
    type :: text
        character(kind=c_char), allocatable :: characters(:)
    end type

    ! pk_options of pk/options.h.
    type, bind(c) :: options
        integer(c_int32_t) :: size = 176
        type(c_ptr) :: trace_path = c_null_ptr, report_path = c_null_ptr, backends = c_null_ptr
        integer(c_int32_t) :: rank = 0, world_size = 0, warmup_steps = 0
        integer(c_int64_t) :: memory_bytes = 0
        integer(c_int32_t) :: history_steps = 0
        type(c_ptr) :: capture = c_null_ptr, capture_path = c_null_ptr, windows_path = c_null_ptr, metrics_path = c_null_ptr
        integer(c_int32_t) :: hang_seconds = 0
        type(c_ptr) :: hang_command = c_null_ptr
        real(c_double) :: overhead_max = 0
        type(c_ptr) :: costs = c_null_ptr, goodput_path = c_null_ptr, job_path = c_null_ptr
        type(c_ptr) :: log = c_null_ptr, log_user = c_null_ptr
        integer(c_int32_t) :: log_level = 0
        type(c_ptr) :: tuning = c_null_ptr
    end type
    type, bind(c) :: backend_info
        integer(c_int32_t) :: size = 232, live = 0
        character(kind=c_char) :: version(32) = c_null_char, reason(192) = c_null_char
    end type

    public :: pk_start, pk_flush, pk_stop, pk_capture, pk_error_text, pk_version_text, pk_get_counts, pk_backend_live
    public :: pk_region_named, pk_region_variant, pk_region_begin, pk_region_end, pk_region_next, pk_region_add, &
              pk_region_note, pk_region_note_text, pk_region_mark, pk_region_set_limit, pk_region_stats, pk_stats_quantile
    public :: pk_step, pk_step_begin, pk_step_kind, pk_step_add_flops, pk_step_stats
    public :: pk_counter_named, pk_counter_set, pk_thread_set_name
    public :: pk_gpu_begin, pk_gpu_end, pk_region_gpu_stats
    public :: pk_phase_begin, pk_phase_end, pk_checkpoint_done, pk_training_set_step

    integer(c_int), parameter, public :: PK_PHASE_STARTUP = 1, PK_PHASE_COMPILE = 2, PK_PHASE_CHECKPOINT = 3, &
        PK_PHASE_RESTORE = 4, PK_PHASE_EVALUATION = 5

    include "pk_c.inc"

contains

    ! Begins a session. What is not given comes from the environment (PK_TRACE_PATH, ...); the arguments are the members
    ! of pk_options, whose manual is pk/options.h.
    subroutine pk_start(trace_path, report_path, backends, rank, world_size, warmup_steps, memory_bytes, history_steps, &
                        capture, capture_path, windows_path, metrics_path, hang_seconds, hang_command, &
                        overhead_max, costs, goodput_path, job_path, log_level, tuning, status)
        character(len=*), intent(in), optional :: trace_path, report_path, backends, capture, capture_path, &
            windows_path, metrics_path, hang_command, costs, goodput_path, job_path, tuning
        integer, intent(in), optional :: rank, world_size, warmup_steps, history_steps, hang_seconds, log_level
        integer(c_int64_t), intent(in), optional :: memory_bytes
        real(c_double), intent(in), optional :: overhead_max
        integer(c_int), intent(out), optional :: status
        type(text), target :: kept(12)
        type(options) :: wanted
        call set_text(trace_path, kept(1), wanted%trace_path)
        call set_text(report_path, kept(2), wanted%report_path)
        call set_text(backends, kept(3), wanted%backends)
        call set_text(capture, kept(4), wanted%capture)
        call set_text(capture_path, kept(5), wanted%capture_path)
        call set_text(windows_path, kept(6), wanted%windows_path)
        call set_text(metrics_path, kept(7), wanted%metrics_path)
        call set_text(hang_command, kept(8), wanted%hang_command)
        call set_text(costs, kept(9), wanted%costs)
        call set_text(goodput_path, kept(10), wanted%goodput_path)
        call set_text(job_path, kept(11), wanted%job_path)
        call set_text(tuning, kept(12), wanted%tuning)
        call set_number(rank, wanted%rank)
        call set_number(world_size, wanted%world_size)
        call set_number(warmup_steps, wanted%warmup_steps)
        call set_number(history_steps, wanted%history_steps)
        call set_number(hang_seconds, wanted%hang_seconds)
        call set_number(log_level, wanted%log_level)
        if (present(memory_bytes)) wanted%memory_bytes = memory_bytes
        if (present(overhead_max)) wanted%overhead_max = overhead_max
        call answer(start_c(wanted), status)
    end subroutine

    ! Everything recorded before this call is in the trace file when it returns.
    subroutine pk_flush(status)
        integer(c_int), intent(out), optional :: status
        call answer(flush_c(), status)
    end subroutine

    ! A trace of what the history holds, and of so many steps more.
    subroutine pk_capture(reason, steps, status)
        character(len=*), intent(in) :: reason
        integer, intent(in) :: steps
        integer(c_int), intent(out), optional :: status
        call answer(capture_c(c_text(reason), int(steps, c_int32_t)), status)
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

    ! The same as pk_region_note with a text.
    subroutine pk_region_note_text(region, key, text)
        type(pk_region), intent(in) :: region, key
        character(len=*), intent(in) :: text
        call note_text_c(region, key, c_text(text))
    end subroutine

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
    subroutine pk_thread_set_name(name)
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
        type(text), target, intent(inout) :: kept
        type(c_ptr), intent(inout) :: where
        integer :: i
        if (.not. present(given)) return
        if (len_trim(given) == 0) return
        allocate (kept%characters(len_trim(given) + 1))
        do i = 1, len_trim(given)
            kept%characters(i) = given(i:i)
        end do
        kept%characters(len_trim(given) + 1) = c_null_char
        where = c_loc(kept%characters)
    end subroutine

    subroutine set_number(given, where)
        integer, intent(in), optional :: given
        integer(c_int32_t), intent(inout) :: where
        if (present(given)) where = int(given, c_int32_t)
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
