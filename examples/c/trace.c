/*
 * Copy an object, with events of this program beside those of the library. Then
 * `swathe trace report copy.ulm` says which stage took the time.
 *
 *   cc trace.c -o trace $(pkg-config --cflags --libs swathe)
 *   ./trace copy.ulm https://archive.example/frame.fits copy.fits
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <swathe.h>

static void stop(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sw_error());
    sw_trace_close();
    exit(1);
}

int main(int count, char **words)
{
    if (count != 4) {
        fprintf(stderr, "usage: trace EVENTS FROM TO\n");
        return 2;
    }
    if (sw_trace_open(words[1], "copy") < 0)
        stop("trace");
    int from = sw_open(words[2], O_RDONLY);
    if (from < 0)
        stop("open");
    int to = sw_open(words[3], O_WRONLY | O_CREAT | O_TRUNC);
    if (to < 0)
        stop("open");
    int64_t size = sw_lseek(from, 0, SEEK_END);
    sw_lseek(from, 0, SEEK_SET);
    if (sw_alloc(to, size) < 0)
        fprintf(stderr, "no room is reserved: %s\n", sw_error());

    static char buffer[1 << 20];
    char fields[64];
    ssize_t length;
    int64_t sum = 0;
    sw_trace_event("COPY_START", NULL);
    while ((length = sw_read(from, buffer, sizeof buffer)) > 0) {
        sum += length;
        if (sw_write(to, buffer, length) < 0)
            stop("write");
    }
    if (length < 0)
        stop("read");
    if (sw_close(to) < 0)
        stop("close");
    snprintf(fields, sizeof fields, "BYTES=%lld RESULT=ok", (long long)sum);
    sw_trace_event("COPY_END", fields);
    sw_close(from);
    printf("%lld bytes\n", (long long)sum);
    return sw_trace_close() == 0 ? 0 : 1;
}
