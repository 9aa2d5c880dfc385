/* The list of cuts both C programs read: one cut a line, nine fields parted by tabs
 *     file  data_start  row_pixels  pixel_bytes  x0  y0  width  height  id
 * x0 and y0 count from 0; data_start is the byte where the pixels of the plain file start. */
#ifndef SWATHE_BENCH_LIST_H
#define SWATHE_BENCH_LIST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    char file[1024];
    char id[64];
    long data_start, row_pixels, pixel_bytes;
    long x0, y0, width, height;
} target;

typedef struct {
    target *items;
    size_t length;
} target_list;

static void fail(const char *what, const char *name) {
    fprintf(stderr, "%s: ", what);
    perror(name);
    exit(1);
}

static target_list read_list(const char *path) {
    target_list list = {NULL, 0};
    size_t room = 0;
    char line[2048];
    FILE *stream = fopen(path, "r");
    if (!stream) fail("open", path);
    while (fgets(line, sizeof line, stream)) {
        if (list.length == room) {
            room = room ? 2 * room : 1024;
            list.items = realloc(list.items, room * sizeof *list.items);
            if (!list.items) fail("memory", path);
        }
        target *t = &list.items[list.length];
        int fields = sscanf(line, "%1023[^\t]\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%ld\t%63s", t->file,
                            &t->data_start, &t->row_pixels, &t->pixel_bytes, &t->x0, &t->y0,
                            &t->width, &t->height, t->id);
        if (fields != 9) {
            fprintf(stderr, "%s: line %zu has %d of 9 fields\n", path, list.length + 1, fields);
            exit(1);
        }
        list.length++;
    }
    fclose(stream);
    return list;
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
