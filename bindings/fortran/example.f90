! example.f90 - the heat equation under perfkit: phases, a counter, steps, and a region of its own per grid size.
!
!     gfortran -O2 pk.f90 example.f90 $(pkg-config --cflags --libs pk) -o example && ./example
program example
    use, intrinsic :: iso_c_binding
    use pk
    implicit none

    integer, parameter :: steps = 50
    type(pk_region) :: run, exchange, sweep
    type(pk_counter) :: residual
    type(pk_stats) :: stats
    integer(c_int) :: status
    integer :: i

    call pk_start(trace_path="example.json", report_path="-", status=status)
    if (status /= PK_OK) print "(2a)", "perfkit: ", pk_error_text()
    run = pk_region_named("heat")
    exchange = pk_region_named("edges", PK_COMM)
    sweep = pk_region_named("sweep", PK_COMPUTE)
    residual = pk_counter_named("residual", "K")

    call pk_region_begin(run)
    call solve(64)
    call solve(256)
    call pk_region_end(run)

    status = pk_region_stats(pk_region_variant(sweep, "n", 256), stats)
    print "(a, i0, a, f0.1, a)", "sweep[n=256]: ", stats%count, " calls, p99 ", &
        real(pk_stats_quantile(stats, 0.99_c_double)) / 1e3, " us"
    call pk_stop(status)
    if (status /= PK_OK .or. stats%count /= steps) error stop 1

contains

    subroutine solve(n)
        integer, intent(in) :: n
        type(pk_region) :: sized
        real, allocatable :: t(:, :), next(:, :)
        sized = pk_region_variant(sweep, "n", n)
        allocate (t(n, n), next(n, n))
        t = 0
        next = 0
        do i = 1, steps
            call pk_region_begin(exchange)
            t(1, :) = 100
            t(:, 1) = t(:, n)
            call pk_region_next(exchange, sized)
            next(2:n - 1, 2:n - 1) = 0.25 * (t(1:n - 2, 2:n - 1) + t(3:n, 2:n - 1) + t(2:n - 1, 1:n - 2) &
                                             + t(2:n - 1, 3:n))
            call pk_region_add(sized, 8_c_int64_t * n * n, 4_c_int64_t * n * n)
            call pk_region_end(sized)
            call pk_counter_set(residual, change(t(2:n - 1, 2:n - 1), next(2:n - 1, 2:n - 1)))
            t(2:n - 1, 2:n - 1) = next(2:n - 1, 2:n - 1)
            call pk_step(int(n, c_int64_t) * n)
        end do
    end subroutine

    real(c_double) function change(before, after)
        real, intent(in) :: before(:, :), after(:, :)
        change = real(maxval(abs(after - before)), c_double)
    end function
end program
