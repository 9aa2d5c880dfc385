/* Cropping one image with cfitsio, a stage at a time.
 *
 *     cfitsio anew|once FILE OUTDIR SECONDS < boxes
 *
 * A box is a line `x0 y0 width height`, counted from 0. For each it prints the seconds to open the
 * image (plain, .gz, .bz2 or .fz), to make the crop by fits_copy_image_section, and to close what
 * was written. `anew` opens the image for each box, `once` for all of them. After SECONDS only what
 * was begun is done. */
#include <fitsio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: cfitsio anew|once FILE OUTDIR SECONDS\n");
        return 2;
    }
    int anew = strcmp(argv[1], "anew") == 0, status = 0, number = 0;
    const char *file = argv[2];
    long x0, y0, width, height;
    double read_s = 0.0, limit = now_s() + atof(argv[4]);
    fitsfile *in = NULL;
    while (scanf("%ld %ld %ld %ld", &x0, &y0, &width, &height) == 4) {
        char path[4096], section[128];
        if (number && now_s() > limit) break;
        if (!in) {
            double start = now_s();
            fits_open_image(&in, file, READONLY, &status);
            stop_on(status, file);
            read_s = now_s() - start;
        }
        snprintf(path, sizeof path, "%s/%d.fits", argv[3], number++);
        snprintf(section, sizeof section, "%ld:%ld,%ld:%ld", x0 + 1, x0 + width, y0 + 1,
                 y0 + height);
        fitsfile *out = NULL;
        double start = now_s();
        fits_create_diskfile(&out, path, &status);
        fits_copy_image_section(in, out, section, &status);
        double cropped = now_s();
        fits_close_file(out, &status);
        stop_on(status, path);
        printf("%.9f %.9f %.9f\n", read_s, cropped - start, now_s() - cropped);
        if (anew) {
            fits_close_file(in, &status);
            stop_on(status, file);
            in = NULL;
        }
    }
    if (in) fits_close_file(in, &status);
    stop_on(status, file);
    return 0;
}
