! As timed.c, of Fortran: the module mpi_f08.
program timed
    use mpi_f08
    implicit none
    integer :: rank, all, fault
    type(MPI_Status) :: got
    call MPI_Init(fault)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, fault)
    call MPI_Allreduce(rank, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, fault)
    if (rank == 0) call MPI_Send(all, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, fault)
    if (rank == 1) call MPI_Recv(all, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, got, fault)
    call MPI_Barrier(MPI_COMM_WORLD)
    if (all /= 1) call MPI_Abort(MPI_COMM_WORLD, 1, fault)
    call MPI_Finalize(fault)
end program
