/*
 * libswathe: objects of any store as files, and cuts out of their images.
 *
 * Calls return -1 if they fail. errno then says why, and sw_error() says it in words. All calls may
 * be used from any thread. Generated from crates/capi/src by cbindgen: see docs/c.md.
 */

#ifndef SWATHE_H
#define SWATHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * Mode of a cut: only the part of the box that lies in the image.
 */
#define SW_TRIM 0

/**
 * Mode of a cut: pixels outside the image are filled with NaN, BLANK or 0.
 */
#define SW_PARTIAL 1

/**
 * Mode of a cut: a box that lies partly outside the image is an error (EDOM).
 */
#define SW_STRICT 2

/**
 * Added to the mode: an output that exists is replaced.
 */
#define SW_REPLACE 16

/**
 * Only the last dump of an array is kept; the one before stays until it is durable.
 */
#define SW_OVERWRITE 1

/**
 * The pixels of a cutout.
 */
struct sw_image {
    /**
     * Type of the pixels, as in FITS: 8, 16, 32 and 64 are integers, -32 and -64 floats.
     */
    int bitpix;
    /**
     * Number of axes, at most 8.
     */
    int axes;
    /**
     * First pixel of each axis in the image, from 0; NAXIS1 first.
     */
    int64_t start[8];
    /**
     * Pixels of each axis; NAXIS1 first, which changes fastest in memory.
     */
    int64_t shape[8];
    /**
     * Bytes of all pixels.
     */
    int64_t bytes;
    /**
     * Physical values are bzero + bscale * pixel.
     */
    double bzero;
    /**
     * See bzero.
     */
    double bscale;
};

/**
 * A range of an object, and the memory for its bytes.
 */
struct sw_range {
    /**
     * First byte, from 0.
     */
    int64_t offset;
    /**
     * Memory for `length` bytes; ranges of a call share none.
     */
    void *buffer;
    /**
     * Bytes to read.
     */
    size_t length;
    /**
     * Bytes that were read: fewer only at the end of the object.
     */
    ssize_t result;
};

/**
 * What an object is.
 */
struct sw_stat {
    /**
     * Bytes of the object.
     */
    int64_t size;
    /**
     * 1 if it is a file of this machine, else 0.
     */
    int is_local;
    /**
     * ETag or date of the version; cut after 127 bytes.
     */
    char version[128];
};

/**
 * The processes (ranks) that share a run, and how bytes go between them. `swathe_mpi.h` makes one
 * of a communicator of MPI. The functions return 0, or another number if they fail; all ranks call
 * them in the same order, one call at a time.
 */
struct sw_ranks {
    /**
     * This rank, from 0.
     */
    int rank;
    /**
     * Number of ranks.
     */
    int size;
    /**
     * Bring the `length` bytes `own` of each rank to all: in the order of ranks, to `all`.
     */
    int (*gather)(void *context, const void *own, size_t length, void *all);
    /**
     * Send `outgoing_lengths[k]` bytes of `outgoing` to each rank k, one part after the other, and
     * receive `incoming_lengths[k]` bytes from it.
     */
    int (*exchange)(void *context,
                    const void *outgoing,
                    const size_t *outgoing_lengths,
                    void *incoming,
                    const size_t *incoming_lengths);
    /**
     * First argument of both, for example the communicator. It must stay valid until sw_run_end.
     */
    void *context;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Return the text of the last error of this thread, empty if there was none. It is valid until
 * another call of this thread fails.
 */
const char *sw_error(void);

/**
 * Return the version of the library, as "0.1.0".
 */
const char *sw_version(void);

/**
 * Cut a box out of an image to a FITS file of its own, with header and WCS: a path, or an object of
 * a store. handle: of an object that is open to read; the headers are read at its first cut.
 *
 * hdu: a number from 0, "NAME" or "NAME,VERSION"; NULL for the first HDU with an image.
 * pixels: first pixel on NAXIS1 and NAXIS2, from 0, width, height. Further axes are cut whole.
 * flags: SW_TRIM, SW_PARTIAL or SW_STRICT, and perhaps SW_REPLACE.
 *
 * Returns 0. Errors: EBADF, EINVAL, EFAULT; ENXIO (no such HDU), EBADMSG (no image, or damaged),
 * EDOM (the box is outside), EFBIG, EEXIST, ESTALE, and those of sw_close.
 */
int sw_cut(int handle,
           const char *hdu,
           const int64_t *pixels,
           int flags,
           const char *output);

/**
 * Cut a box out of an image into memory: pixels as they are stored, before BSCALE and BZERO, in the
 * byte order of this machine. Arguments as of sw_cut, without SW_REPLACE.
 *
 * image: filled in, also if the memory is too small; may be NULL.
 * buffer: memory for the pixels; NULL with a length of 0 fills in the image only.
 *
 * Returns the bytes of the pixels. Errors: as sw_cut; ERANGE if they are more than length.
 */
ssize_t sw_cut_pixels(int handle,
                      const char *hdu,
                      const int64_t *pixels,
                      int flags,
                      struct sw_image *image,
                      void *buffer,
                      size_t length);

/**
 * Open an object: a path, a URL, or NAME:path of a store in the file that SWATHE_STORES names.
 *
 * O_RDONLY reads the version that the object has now. O_WRONLY | O_CREAT writes a new object, with
 * O_TRUNC in place of the one of this name; it has its name once it is closed. O_EXCL, or no
 * O_TRUNC: an object that exists is an error (EEXIST). O_CLOEXEC is accepted.
 *
 * Returns a handle for the calls below, which is no descriptor of a file.
 * Errors: ENOENT, EACCES, EEXIST, EISDIR, ENOTDIR, EINVAL (flags), ENOTSUP, EIO, EMFILE.
 */
int sw_open(const char *url,
            int flags);

/**
 * Read on from the position. Small reads are served from a buffer of the size that is best for the
 * store; reads of at least that size go straight into the memory of the caller.
 *
 * Returns how many bytes: fewer than length only at the end of the object, and before what cannot
 * be read. Errors: EBADF, EFAULT, EINVAL, ESTALE (the object changed), EACCES, EIO.
 */
ssize_t sw_read(int handle,
                void *buffer,
                size_t length);

/**
 * Read at an offset, straight into the memory of the caller. The position stays, and threads may
 * read one handle at the same time.
 *
 * Returns and errors as sw_read; EINVAL for a negative offset.
 */
ssize_t sw_pread(int handle,
                 void *buffer,
                 size_t length,
                 int64_t offset);

/**
 * Read many ranges, with the requests that cost least for all of them together. Each range gets
 * its result; after an error that is -1.
 *
 * Returns the sum of the results. Errors: as sw_pread.
 */
ssize_t sw_preadv(int handle,
                  struct sw_range *ranges,
                  int count);

/**
 * Append bytes to an object that is open to write. Parts of 8 MiB are sent when they are full, so
 * an error may be that of earlier bytes. After an error nothing more is written.
 *
 * Returns length. Errors: EBADF, EFAULT, EINVAL, ENOSPC, EACCES, EFBIG, EIO.
 */
ssize_t sw_write(int handle,
                 const void *buffer,
                 size_t length);

/**
 * Move the position of sw_read: from the start (SEEK_SET), from here (SEEK_CUR), from the end
 * (SEEK_END). Nothing is read yet.
 *
 * Returns the new position, which may be after the end. Of a handle that is open to write, the
 * bytes that were written are returned for an offset of 0 from SEEK_CUR; any other is ESPIPE.
 * Errors: EBADF, EINVAL (a negative position, another whence), EOVERFLOW, ESPIPE.
 */
int64_t sw_lseek(int handle,
                 int64_t offset,
                 int whence);

/**
 * Reserve room for `bytes` bytes in all, before the object is written or meanwhile: in a folder, on a
 * block server, or on all servers of a striped store. Closing it frees the room that it did not use.
 *
 * Returns 0. Errors: ENOSPC, of a striped store with the name of the server; ENOTSUP if its store, or
 * a server of it, cannot; EBADF, EINVAL, EACCES, EIO. After an error there is what was there before.
 */
int sw_alloc(int handle,
             int64_t bytes);

/**
 * Fill in size and version of an object.
 *
 * Returns 0. Errors: as sw_open to read.
 */
int sw_stat(const char *url, struct sw_stat *stat);

/**
 * Close a handle. An object that was written gets its name now, after what was written is read
 * back and compared; one that could not be written whole is removed. A run that is written is left
 * as it is: see sw_run_end.
 *
 * Returns 0. The handle is closed in any case. Errors: EBADF; of an object that was written
 * EEXIST, ENOSPC, EACCES, EIO, and those of earlier writes.
 */
int sw_close(int handle);

/**
 * Begin a run: a group of Zarr in a new folder `FOLDER/NAME-xxxxxxxxxxxx.zarr`. All ranks call it, as
 * all calls up to sw_run_end, in the same order; an error of one is returned by all.
 *
 * folder is a path, a URL, or NAME:path of a store. iterations is the number of the last iteration;
 * the first is 0. ranks are the processes that share the arrays; NULL: this one only.
 *
 * Returns a handle. Errors: EINVAL, EFAULT, EIO (ranks), EMFILE.
 */
int sw_run_begin(const char *folder,
                 const char *name,
                 int64_t iterations,
                 const struct sw_ranks *ranks);

/**
 * Fill in the folder of a run that is written, as sw_run_open takes it, with a zero at the end.
 *
 * Returns 0. Errors: EBADF, EFAULT, ERANGE (the memory is too small).
 */
int sw_run_folder(int run,
                  char *buffer,
                  size_t length);

/**
 * Add an array to a run. All ranks call it.
 *
 * type is that of NumPy, as "f4" or "u1". shape has the lengths of its axes, the last one fastest, as
 * C has them; a program in Fortran gives its own in reverse. It is written at each iteration that is
 * a multiple of every. pattern says how its axes are divided over ranks, as High Performance Fortran
 * does: "BBB", "B**", "BLOCK,*,CYCLIC(4)"; NULL: the first by blocks. flags: 0 or SW_OVERWRITE.
 *
 * Returns the number of the array, from 0. Errors: EBADF, EINVAL, EFAULT, EEXIST, ENOSPC, EACCES,
 * EIO.
 */
int sw_run_array(int run,
                 const char *name,
                 const char *type_,
                 int axes,
                 const int64_t *shape,
                 int64_t every,
                 const char *pattern,
                 int flags);

/**
 * Fill in where the block of this rank begins in an array, and its lengths, for each axis. Of an
 * axis that is dealt out in turn (CYCLIC) its ranges lie in the block without gaps.
 *
 * Returns 0. Errors: EBADF, EINVAL, EFAULT.
 */
int sw_run_block(int run,
                 int array,
                 int64_t *start,
                 int64_t *shape);

/**
 * Write the block of this rank at an iteration; the memory may be changed when it returns. All ranks
 * call it. It is durable after sw_run_sync. Nothing is written at iterations without a dump.
 *
 * Returns 1 if there was a dump to write, else 0. Errors: EBADF, EFAULT, EINVAL (another iteration or
 * length than expected), EEXIST (written before), and those of earlier writes: ENOSPC, EACCES, EIO.
 */
int sw_run_write(int run,
                 int array,
                 int64_t iteration,
                 const void *block,
                 size_t length);

/**
 * Wait until all that was written is durable. All ranks call it.
 *
 * Returns 0. Errors: EBADF, ENOSPC, EACCES, EIO.
 */
int sw_run_sync(int run);

/**
 * End a run when all is durable. All ranks call it. The handle is closed in any case.
 *
 * Returns 0. Errors: as sw_run_sync.
 */
int sw_run_end(int run);

/**
 * Open a run to read: the folder of its group. sw_close closes it.
 *
 * Returns a handle, which any number of threads may use. Errors: ENOENT, EACCES, EBADMSG, EIO,
 * EMFILE.
 */
int sw_run_open(const char *folder);

/**
 * Read a box of an array at an iteration: from start, of lengths shape, the last axis fastest. Only
 * the chunks that it touches are read.
 *
 * Returns 0. Errors: EBADF, EFAULT, EINVAL (length is not that of the box), EDOM (the box is outside
 * the array), ENXIO (no such array), ENOENT (no such iteration), ESTALE (a checkpoint
 * that was replaced meanwhile), EBADMSG (damaged), EACCES, EIO.
 */
int sw_run_read(int run,
                const char *array,
                int64_t iteration,
                int axes,
                const int64_t *start,
                const int64_t *shape,
                void *buffer,
                size_t length);

/**
 * Record events from now on: those of sw_trace_event and those of the library itself.
 *
 * place: where they go, as of `swathe --trace`: a file, "tcp://HOST:PORT" of a collector,
 * "stderr", "syslog", "memory:FILE". {pid} and {host} in it are replaced.
 * program: the name of the program in the events.
 * The token of a collector is that of SWATHE_TRACE_TOKEN.
 *
 * Returns 0. Errors: EBUSY (events are recorded already), EINVAL (no place), those of the file.
 */
int sw_trace_open(const char *place,
                  const char *program);

/**
 * Record an event. It costs little if events are not recorded.
 *
 * name: of A-Z, 0-9, '.', '_', '-'. A stage has two events, NAME_START and NAME_END.
 * fields: as in a line of ULM: "TARGET=star-17 BYTES=25920 REASON=\"no such star\"", with the
 * escapes \", \\, \n, \r, \t; NULL for none. RESULT=error makes it an error.
 *
 * Returns 0. Errors: EINVAL.
 */
int sw_trace_event(const char *name,
                   const char *fields);

/**
 * Stop recording, and wait up to ten seconds until all events are written.
 *
 * Returns 0, also if nothing was recorded. Errors: EIO if events were dropped.
 */
int sw_trace_close(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SWATHE_H */
