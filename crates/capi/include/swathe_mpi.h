/*
 * The ranks of a run from a communicator of MPI, for sw_run_begin. Compiled by the program, so that
 * libswathe needs no MPI. A program in Fortran compiles swathe_mpi.c, which has sw_mpi_ranks_f.
 */
#ifndef SWATHE_MPI_H
#define SWATHE_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <swathe.h>

static inline int sw_mpi_gather(void *context, const void *own, size_t length, void *all) {
    if (length > INT_MAX)
        return MPI_ERR_COUNT;
    return MPI_Allgather(own, (int)length, MPI_BYTE, all, (int)length, MPI_BYTE,
                         *(MPI_Comm *)context);
}

/* Parts of more than 2 GiB, which MPI before version 4 cannot count, are refused. */
static inline int sw_mpi_exchange(void *context, const void *outgoing,
                                  const size_t *outgoing_lengths, void *incoming,
                                  const size_t *incoming_lengths) {
    MPI_Comm comm = *(MPI_Comm *)context;
    int size, status, is_small = 1, all_small;
    size_t sent = 0, received = 0;
    if ((status = MPI_Comm_size(comm, &size)) != MPI_SUCCESS)
        return status;
    int *counts = (int *)malloc(sizeof(int) * 4 * (size_t)size);
    if (counts == NULL)
        is_small = 0;
    for (int rank = 0; is_small && rank < size; rank++) {
        if (sent > INT_MAX || received > INT_MAX || outgoing_lengths[rank] > INT_MAX ||
            incoming_lengths[rank] > INT_MAX)
            is_small = 0;
        if (is_small) {
            counts[rank] = (int)outgoing_lengths[rank];
            counts[size + rank] = (int)sent;
            counts[2 * size + rank] = (int)incoming_lengths[rank];
            counts[3 * size + rank] = (int)received;
        }
        sent += outgoing_lengths[rank];
        received += incoming_lengths[rank];
    }
    /* A rank that cannot take part tells the others, which would wait for it. */
    status = MPI_Allreduce(&is_small, &all_small, 1, MPI_INT, MPI_MIN, comm);
    if (status == MPI_SUCCESS)
        status = all_small ? MPI_Alltoallv(outgoing, counts, counts + size, MPI_BYTE, incoming,
                                           counts + 2 * size, counts + 3 * size, MPI_BYTE, comm)
                           : MPI_ERR_COUNT;
    free(counts);
    return status;
}

/* The ranks of a communicator, which must stay valid until sw_run_end. */
static inline struct sw_ranks sw_mpi_ranks(MPI_Comm *comm) {
    struct sw_ranks ranks = {0, 1, sw_mpi_gather, sw_mpi_exchange, comm};
    MPI_Comm_rank(*comm, &ranks.rank);
    MPI_Comm_size(*comm, &ranks.size);
    return ranks;
}

#endif
