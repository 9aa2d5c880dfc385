/* The floor: what the system calls of cutting cost, with no FITS in between.
 *
 *     floor LIST OUTDIR [THREADS]
 *
 * For every target: open the file, pread each row of the box, write an output file of one
 * 2880-byte header block and the rows padded to 2880, close both. Nothing is looked up: the
 * list says where the pixels start. Threads share the list by whole files. Prints seconds.
 * A line of the list is a cut:
 *     x0 y0 width height data_start row_pixels pixel_bytes id file
 * x0 and y0 count from 0; data_start is the byte where the pixels of the plain file start. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 2880, CARD = 80 };

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
        int fields = sscanf(line, "%ld %ld %ld %ld %ld %ld %ld %63s %1023[^\n]", &t->x0, &t->y0,
                            &t->width, &t->height, &t->data_start, &t->row_pixels,
                            &t->pixel_bytes, t->id, t->file);
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

typedef struct {
    const target_list *list;
    const size_t *group_starts; /* first target of every file, then the list's length */
    size_t groups;
    atomic_size_t next_group;
    int out_dir;
} work;

static size_t padded(size_t bytes) { return (bytes + BLOCK - 1) / BLOCK * BLOCK; }

static size_t put_card(char *at, const char *key, long value, int logical) {
    char card[CARD + 1];
    if (logical)
        snprintf(card, sizeof card, "%-8s= %20s", key, value ? "T" : "F");
    else
        snprintf(card, sizeof card, "%-8s= %20ld", key, value);
    memcpy(at, card, strlen(card));
    return CARD;
}

static void put_header(char *block, const target *t) {
    size_t at = 0;
    memset(block, ' ', BLOCK);
    at += put_card(block + at, "SIMPLE", 1, 1);
    at += put_card(block + at, "BITPIX", 8 * t->pixel_bytes, 0);
    at += put_card(block + at, "NAXIS", 2, 0);
    at += put_card(block + at, "NAXIS1", t->width, 0);
    at += put_card(block + at, "NAXIS2", t->height, 0);
    memcpy(block + at, "END", 3);
}

static void read_rows(const target *t, char *rows) {
    size_t row_bytes = (size_t)(t->width * t->pixel_bytes);
    int file = open(t->file, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("open", t->file);
    for (long y = 0; y < t->height; y++) {
        off_t at = t->data_start + ((t->y0 + y) * t->row_pixels + t->x0) * t->pixel_bytes;
        ssize_t got = pread(file, rows + (size_t)y * row_bytes, row_bytes, at);
        if (got != (ssize_t)row_bytes) fail("pread", t->file);
    }
    close(file);
}

static void write_cut(int out_dir, const target *t, const char *bytes, size_t length) {
    char name[80];
    snprintf(name, sizeof name, "%s.fits", t->id);
    int out = openat(out_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (out < 0) fail("create", name);
    if (write(out, bytes, length) != (ssize_t)length) fail("write", name);
    close(out);
}

/* A buffer that holds the header block and the padded rows, zeroed only when it grows. */
static char *room_for(char *buffer, size_t *room, size_t length) {
    if (length <= *room) return buffer;
    free(buffer);
    *room = length;
    buffer = calloc(1, length);
    if (!buffer) fail("memory", "rows");
    return buffer;
}

static void *cut_files(void *argument) {
    work *w = argument;
    char *buffer = NULL;
    size_t room = 0, group;
    while ((group = atomic_fetch_add(&w->next_group, 1)) < w->groups) {
        for (size_t i = w->group_starts[group]; i < w->group_starts[group + 1]; i++) {
            const target *t = &w->list->items[i];
            size_t data = (size_t)(t->width * t->height * t->pixel_bytes);
            size_t length = BLOCK + padded(data);
            buffer = room_for(buffer, &room, length);
            put_header(buffer, t);
            read_rows(t, buffer + BLOCK);
            memset(buffer + BLOCK + data, 0, length - BLOCK - data);
            write_cut(w->out_dir, t, buffer, length);
        }
    }
    free(buffer);
    return NULL;
}

static size_t find_groups(const target_list *list, size_t *starts) {
    size_t groups = 0;
    for (size_t i = 0; i < list->length; i++)
        if (i == 0 || strcmp(list->items[i].file, list->items[i - 1].file) != 0)
            starts[groups++] = i;
    starts[groups] = list->length;
    return groups;
}

static double run(work *w, int threads) {
    pthread_t others[64];
    double start = now_s();
    for (int i = 1; i < threads; i++)
        if (pthread_create(&others[i], NULL, cut_files, w)) fail("thread", "create");
    cut_files(w);
    for (int i = 1; i < threads; i++) pthread_join(others[i], NULL);
    return now_s() - start;
}

int main(int argc, char **argv) {
    int threads = argc == 4 ? atoi(argv[3]) : 1;
    if (argc < 3 || argc > 4 || threads < 1 || threads > 64) {
        fprintf(stderr, "usage: floor LIST OUTDIR [THREADS]\n");
        return 2;
    }
    target_list list = read_list(argv[1]);
    size_t *starts = malloc((list.length + 1) * sizeof *starts);
    if (!starts) fail("memory", argv[1]);
    work w = {.list = &list, .group_starts = starts, .groups = find_groups(&list, starts)};
    w.out_dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w.out_dir < 0) fail("open", argv[2]);
    printf("%.6f\n", run(&w, threads));
    free(starts);
    free(list.items);
    return 0;
}
