/* For programs in Fortran: the ranks of a communicator that Fortran has as a number. */
#include <swathe_mpi.h>

/* Fill in the ranks of a communicator. Call it once; the communicator is kept. */
void sw_mpi_ranks_f(const MPI_Fint *comm, struct sw_ranks *ranks) {
    static MPI_Comm kept;
    kept = MPI_Comm_f2c(*comm);
    *ranks = sw_mpi_ranks(&kept);
}

/* Fill in the ranks of MPI_COMM_WORLD. */
void sw_mpi_world_f(struct sw_ranks *ranks) {
    const MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
    sw_mpi_ranks_f(&world, ranks);
}
