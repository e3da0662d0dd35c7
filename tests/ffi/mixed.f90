! mixed.f90 - what each mixed program does, in Fortran: see seen.py.
module called
    use pk
    implicit none
    type(pk_region), save :: back
contains
    subroutine called_back() bind(c)
        call pk_region_begin(back)
        call pk_region_end(back)
    end subroutine
end module

program mixed
    use, intrinsic :: iso_c_binding
    use omp_lib
    use pk
    use called
    implicit none
    interface
        subroutine inner_work(callback) bind(c)
            import :: c_funptr
            type(c_funptr), value :: callback
        end subroutine

        type(c_ptr) function inner_stream() bind(c)
            import :: c_ptr
        end function
    end interface
    type(pk_region) :: outer, sized, first, second, there, span
    type(c_ptr) :: stream
    type(pk_counter) :: number
    type(pk_stats) :: stats
    type(pk_counts) :: counts
    character(len=:), allocatable :: reason
    integer(c_int) :: status
    integer(c_int64_t) :: median
    integer :: i
    logical :: live

    call pk_start(trace_path="mixed.json  ", report_path="", backends="cuda", rank=1, world_size=2, &
                  status=status)
    call expect(status == PK_OK, "start")
    call pk_start(status=status)
    reason = pk_error_text()
    call expect(status == PK_EBUSY .and. index(reason, "start") > 0, "a second start: " // reason)
    outer = pk_region_named("outer", PK_COMPUTE)
    back = pk_region_named("back", PK_IO)
    number = pk_counter_named("number", "pieces")
    call pk_region_set_limit(outer, 600.0_c_double)
    call pk_step_begin()
    call pk_step_kind("")
    call pk_phase_begin(PK_PHASE_RESTORE)
    call pk_training_set_step(100_c_int64_t)
    call pk_phase_end(PK_PHASE_RESTORE)
    do i = 0, 9
        call pk_region_begin(outer)
        call pk_region_add(outer, 100_c_int64_t, 10_c_int64_t)
        call inner_work(c_funloc(called_back))
        call pk_counter_set(number, real(i, c_double))
        call pk_step(32_c_int64_t)
        call pk_region_end(outer)
    end do
    call pk_phase_begin(PK_PHASE_CHECKPOINT)
    call pk_checkpoint_done(105_c_int64_t, 4096_c_int64_t)
    call pk_phase_end(PK_PHASE_CHECKPOINT)
    sized = pk_region_variant(outer, "n", 3)
    first = pk_region_named("first")
    second = pk_region_named("second")
    call pk_region_begin(sized)
    call pk_region_begin(first)
    call pk_region_next(first, second)
    call pk_region_note(second, first, 7_c_int64_t)
    call pk_region_note_text(second, pk_region_named("moment"), "seven")
    call pk_region_mark(pk_region_named("moment"))
    call pk_region_end(second)
    call pk_region_end(sized)
    span = pk_region_named("span", PK_COMPUTE)
    stream = inner_stream()
    if (c_associated(stream)) then
        call pk_gpu_begin(span, stream)
        call pk_gpu_begin(span, c_null_ptr)
        call pk_gpu_end(span, c_null_ptr)
        call pk_gpu_end(span, stream)
    end if
    there = pk_region_named("elsewhere")
    !$omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) then
        call pk_thread_set_name("second thread")
        call pk_region_begin(there)
        call pk_region_end(there)
    end if
    !$omp end parallel
    status = pk_region_stats(outer, stats)
    call expect(status == PK_OK, "statistics")
    call expect(stats%count == 10 .and. stats%bytes == 1000 .and. stats%flops == 100, "sums")
    median = pk_stats_quantile(stats, 0.5_c_double)
    call expect(median >= stats%min .and. median <= stats%max, "quantile")
    status = pk_step_stats(stats)
    call expect(status == PK_OK .and. stats%count == 10, "steps")
    live = pk_backend_live("nvml", reason)
    call expect(.not. live .and. len(reason) > 0, "nvml")
    live = pk_backend_live("nonsense", reason)
    call expect(.not. live .and. len(reason) > 0, "no such backend")
    reason = pk_version_text()
    call expect(len(reason) >= 5, "version")
    call pk_flush(status)
    call expect(status == PK_OK, "flush")
    call pk_stop(status)
    call expect(status == PK_OK, "stop")
    if (c_associated(stream)) then
        status = pk_region_gpu_stats(span, stats)
        call expect(status == PK_OK .and. stats%count == 2, "spans")
    end if
    status = pk_get_counts(counts)
    call expect(status == PK_OK .and. counts%begun == 34 .and. counts%recorded == 34, "counts")
    call expect(counts%unbalanced == 0 .and. counts%steps == 10, "more counts")
    call pk_capture("there is no session", 1, status)
    call expect(status == PK_EOFF, "a capture without a session")
    call pk_start(history_steps=4, capture_path="kept-%s.json", tuning="history_bytes=1M,peak=fp64", status=status)
    call expect(status == PK_OK, "history")
    call pk_step(1_c_int64_t)
    call pk_capture("asked", 1, status)
    call expect(status == PK_OK, "capture")
    call pk_step(1_c_int64_t)
    call pk_stop()

contains

    subroutine expect(fine, what)
        logical, intent(in) :: fine
        character(len=*), intent(in) :: what
        if (fine) return
        print "(a)", what
        error stop 1
    end subroutine
end program
