/*
 * The calls of libswathe on an object that is read again and again: seconds a call, beside the
 * calls of the system for a file. Prints a line for each: name, count, seconds.
 *
 *   capi OBJECT COUNT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swathe.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, LARGE = 8 << 20 };

static char buffer[LARGE];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "%s: %s\n", what, sw_error());
        exit(1);
    }
}

int main(int words, char **word)
{
    if (words != 3) {
        fprintf(stderr, "usage: capi OBJECT COUNT\n");
        return 2;
    }
    long count = atol(word[2]);
    int handle = sw_open(word[1], O_RDONLY), file = open(word[1], O_RDONLY);
    check(handle >= 0, "open");
    int64_t size = sw_lseek(handle, 0, SEEK_END);
    int64_t blocks = size / BLOCK;
    unsigned long place = 1;
    memset(buffer, 1, sizeof buffer); /* so that the first read finds its pages */

    double start = now();
    for (long i = 0; i < count; i++) {
        place = place * 6364136223846793005UL + 1442695040888963407UL;
        int64_t offset = (int64_t)((place >> 33) % blocks) * BLOCK;
        check(sw_pread(handle, buffer, BLOCK, offset) == BLOCK, "pread");
    }
    printf("sw_pread %ld %.9f\n", count, now() - start);

    if (file >= 0) {
        start = now();
        for (long i = 0; i < count; i++) {
            place = place * 6364136223846793005UL + 1442695040888963407UL;
            int64_t offset = (int64_t)((place >> 33) % blocks) * BLOCK;
            check(pread(file, buffer, BLOCK, offset) == BLOCK, "pread(2)");
        }
        printf("pread(2) %ld %.9f\n", count, now() - start);
    }

    sw_lseek(handle, 0, SEEK_SET);
    long bytes = 0;
    start = now();
    while (bytes < 32 * count && sw_read(handle, buffer, 1) == 1)
        bytes++;
    printf("sw_read_1 %ld %.9f\n", bytes, now() - start);

    for (int way = 0; way < 2; way++) {
        ssize_t length;
        bytes = 0;
        sw_lseek(handle, 0, SEEK_SET);
        if (way == 1 && lseek(file, 0, SEEK_SET) != 0)
            break;
        start = now();
        while ((length = way == 0 ? sw_read(handle, buffer, LARGE) : read(file, buffer, LARGE)) > 0)
            bytes += length;
        check(length == 0 && bytes == size, "read");
        printf("%s %ld %.9f\n", way == 0 ? "sw_read_8MiB" : "read(2)_8MiB", bytes, now() - start);
    }
    check(sw_close(handle) == 0, "close");
    return 0;
}
