/*
 * A simulation over the processes of MPI writes an array of 24 x 20 x 16 at each second iteration, and
 * its checkpoint at each third.
 *
 *   mpicc run.c -o run $(pkg-config --cflags --libs swathe)
 *   mpiexec -n 4 ./run FOLDER
 */
#include <stdio.h>
#include <stdlib.h>
#include <swathe_mpi.h>

static int rank;

static int check(int result) {
    if (result < 0) {
        fprintf(stderr, "rank %d: %s\n", rank, sw_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return result;
}

/* The value of an element at an iteration: its number in the whole array, and the iteration. */
static void compute(float *block, const int64_t *start, const int64_t *shape, int iteration) {
    for (int64_t z = 0; z < shape[0]; z++)
        for (int64_t y = 0; y < shape[1]; y++)
            for (int64_t x = 0; x < shape[2]; x++)
                *block++ = (float)(((start[0] + z) * 20 + start[1] + y) * 16 + start[2] + x +
                                   10000 * iteration);
}

int main(int argc, char **argv) {
    const int iterations = 6;
    const int64_t shape[3] = {24, 20, 16};
    int64_t start[3], own[3];
    char folder[1024];
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    if (argc != 2)
        MPI_Abort(comm, 2);

    struct sw_ranks ranks = sw_mpi_ranks(&comm);
    int run = check(sw_run_begin(argv[1], "waves", iterations, &ranks));
    int temp = check(sw_run_array(run, "temp", "f4", 3, shape, 2, "BBB", 0));
    int restart = check(sw_run_array(run, "restart", "f4", 3, shape, 3, "BBB", SW_OVERWRITE));
    check(sw_run_block(run, temp, start, own));
    size_t length = (size_t)(own[0] * own[1] * own[2]) * sizeof(float);
    float *block = malloc(length + 1);
    for (int i = 0; i <= iterations; i++) {
        compute(block, start, own, i);
        check(sw_run_write(run, temp, i, block, length));
        check(sw_run_write(run, restart, i, block, length));
    }
    check(sw_run_folder(run, folder, sizeof folder));
    check(sw_run_end(run)); /* all is durable */

    if (rank == 0) {
        /* One row of the last checkpoint. */
        float row[16];
        int64_t from[3] = {3, 2, 0}, lengths[3] = {1, 1, 16};
        int stored = check(sw_run_open(folder));
        check(sw_run_read(stored, "restart", 6, 3, from, lengths, row, sizeof row));
        check(sw_close(stored));
        printf("%s\n%.0f %.0f\n", folder, row[0], row[15]);
    }
    free(block);
    MPI_Finalize();
    return 0;
}
