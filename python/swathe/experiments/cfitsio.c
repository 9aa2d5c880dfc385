/* Cropping with cfitsio, a stage at a time.
 *
 *     cfitsio anew|once OUTDIR SECONDS < boxes
 *
 * A box is a line `x0 y0 width height FILE`, counted from 0. For each it prints the seconds to open
 * the image (plain, .gz, .bz2 or .fz), to make the crop by fits_copy_image_section, and to close
 * what was written; in the last line the seconds of all, opening and closing of images included.
 * `anew` opens the image for each box, `once` for all boxes of the same file that follow each
 * other. After SECONDS only what was begun is done. */
#include <fitsio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    long x0, y0, width, height;
    const char *file; /* the same for boxes of the same file that follow each other */
    double read_s, crop_s, write_s;
} box;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop_on(int status, const char *name) {
    if (!status) return;
    fprintf(stderr, "cfitsio, %s:\n", name);
    fits_report_error(stderr, status);
    exit(1);
}

static size_t read_boxes(box **boxes) {
    size_t count = 0, room = 0;
    char file[4096];
    for (;;) {
        if (count == room) {
            room = room ? 2 * room : 64;
            *boxes = realloc(*boxes, room * sizeof **boxes);
            if (!*boxes) stop_on(MEMORY_ALLOCATION, "boxes");
        }
        box *b = &(*boxes)[count];
        if (scanf("%ld %ld %ld %ld %4095[^\n]", &b->x0, &b->y0, &b->width, &b->height, file) != 5)
            return count;
        const char *last = count ? b[-1].file : "";
        b->file = strcmp(last, file) ? strdup(file) : last;
        if (!b->file) stop_on(MEMORY_ALLOCATION, "boxes");
        count++;
    }
}

static void crop(fitsfile *in, box *b, const char *folder, size_t number) {
    char path[4096], section[128];
    fitsfile *out = NULL;
    int status = 0;
    snprintf(path, sizeof path, "%s/%zu.fits", folder, number);
    snprintf(section, sizeof section, "%ld:%ld,%ld:%ld", b->x0 + 1, b->x0 + b->width, b->y0 + 1,
             b->y0 + b->height);
    double start = now_s();
    fits_create_diskfile(&out, path, &status);
    fits_copy_image_section(in, out, section, &status);
    double cropped = now_s();
    fits_close_file(out, &status);
    stop_on(status, path);
    b->crop_s = cropped - start;
    b->write_s = now_s() - cropped;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: cfitsio anew|once OUTDIR SECONDS\n");
        return 2;
    }
    int anew = strcmp(argv[1], "anew") == 0, status = 0;
    box *boxes = NULL;
    size_t count = read_boxes(&boxes), done = 0;
    fitsfile *in = NULL;
    double start = now_s(), limit = start + atof(argv[3]), read_s = 0.0;
    for (; done < count && (done == 0 || now_s() <= limit); done++) {
        box *b = &boxes[done];
        if (!in) {
            double opened = now_s();
            fits_open_image(&in, b->file, READONLY, &status);
            stop_on(status, b->file);
            read_s = now_s() - opened;
        }
        b->read_s = read_s;
        crop(in, b, argv[2], done);
        if (anew || done + 1 == count || b->file != boxes[done + 1].file) {
            fits_close_file(in, &status);
            stop_on(status, b->file);
            in = NULL;
        }
    }
    if (in) fits_close_file(in, &status);
    double all_s = now_s() - start;
    for (size_t i = 0; i < done; i++)
        printf("%.9f %.9f %.9f\n", boxes[i].read_s, boxes[i].crop_s, boxes[i].write_s);
    printf("%.9f\n", all_s);
    free(boxes);
    return 0;
}
