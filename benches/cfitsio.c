/* Cutting with cfitsio, as its documentation shows it.
 *
 *     cfitsio [--keep-open] LIST OUTDIR
 *
 * For every target: open the file (plain, .gz, .bz2 or .fz), fits_copy_image_section to a new
 * file, close both. With --keep-open a file stays open over its targets that follow each other
 * in the list. Prints seconds. */
#include "list.h"

#include <fitsio.h>

static void stop_on(int status, const char *name) {
    if (!status) return;
    fprintf(stderr, "cfitsio, %s:\n", name);
    fits_report_error(stderr, status);
    exit(1);
}

static void cut_one(fitsfile *in, const target *t, const char *out_dir) {
    char path[2048], section[128];
    fitsfile *out = NULL;
    int status = 0;
    snprintf(path, sizeof path, "%s/%s.fits", out_dir, t->id);
    snprintf(section, sizeof section, "%ld:%ld,%ld:%ld", t->x0 + 1, t->x0 + t->width, t->y0 + 1,
             t->y0 + t->height);
    fits_create_diskfile(&out, path, &status);
    fits_copy_image_section(in, out, section, &status);
    fits_close_file(out, &status);
    stop_on(status, path);
}

static fitsfile *open_image(const char *file) {
    fitsfile *in = NULL;
    int status = 0;
    fits_open_image(&in, file, READONLY, &status);
    stop_on(status, file);
    return in;
}

static void close_image(fitsfile *in, const char *file) {
    int status = 0;
    fits_close_file(in, &status);
    stop_on(status, file);
}

static double run(const target_list *list, const char *out_dir, int keep_open) {
    double start = now_s();
    fitsfile *in = NULL;
    for (size_t i = 0; i < list->length; i++) {
        const target *t = &list->items[i];
        if (!in) in = open_image(t->file);
        cut_one(in, t, out_dir);
        int more = i + 1 < list->length && strcmp(list->items[i + 1].file, t->file) == 0;
        if (keep_open && more) continue;
        close_image(in, t->file);
        in = NULL;
    }
    return now_s() - start;
}

int main(int argc, char **argv) {
    int keep_open = argc == 4 && strcmp(argv[1], "--keep-open") == 0;
    if (argc != 3 + keep_open) {
        fprintf(stderr, "usage: cfitsio [--keep-open] LIST OUTDIR\n");
        return 2;
    }
    target_list list = read_list(argv[1 + keep_open]);
    printf("%.6f\n", run(&list, argv[2 + keep_open], keep_open));
    free(list.items);
    return 0;
}
