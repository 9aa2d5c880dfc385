/*
 * Read an object in three ways: from its start to its end, at an offset, and many ranges at once.
 *
 *   cc read.c -o read $(pkg-config --cflags --libs swathe)
 *   ./read https://archive.example/frame.fits
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <swathe.h>

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sw_error());
    exit(1);
}

int main(int count, char **words)
{
    if (count != 2) {
        fprintf(stderr, "usage: read URL\n");
        return 2;
    }
    int object = sw_open(words[1], O_RDONLY);
    if (object < 0)
        stop("open");
    int64_t size = sw_lseek(object, 0, SEEK_END);

    /* Small reads come from a buffer: one request for each buffer. */
    unsigned long sum = 0;
    unsigned char byte;
    ssize_t length;
    sw_lseek(object, 0, SEEK_SET);
    while ((length = sw_read(object, &byte, 1)) == 1)
        sum += byte;
    if (length < 0)
        stop("read");

    /* Straight into this memory, from any thread. */
    char card[80];
    length = sw_pread(object, card, sizeof card, 0);
    if (length < 0)
        stop("pread");

    /* One plan for all ranges: those near each other share a request. */
    unsigned char first[16], last[16];
    struct sw_range ranges[] = {
        {.offset = 0, .buffer = first, .length = sizeof first},
        {.offset = size > 16 ? size - 16 : 0, .buffer = last, .length = sizeof last},
    };
    if (sw_preadv(object, ranges, 2) < 0)
        stop("preadv");

    printf("%lld bytes, sum %lu\n", (long long)size, sum);
    printf("begins with %.*s\n", (int)length, card);
    printf("ranges of %zd and %zd bytes\n", ranges[0].result, ranges[1].result);
    return sw_close(object) == 0 ? 0 : 1;
}
