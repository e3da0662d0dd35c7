subroutine ffi_pairs(n) bind(c)
    use, intrinsic :: iso_c_binding
    use pk
    implicit none
    integer(c_int64_t), value :: n
    integer(c_int64_t) :: i
    type(pk_region) :: region
    region = pk_region_named("Fortran")
    do i = 1, n
        call pk_region_begin(region)
        call pk_region_end(region)
    end do
end subroutine
