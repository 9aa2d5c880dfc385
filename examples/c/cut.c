/*
 * Cut a box out of an image: to a FITS file, and into memory.
 *
 *   cc cut.c -o cut $(pkg-config --cflags --libs swathe)
 *   ./cut frame.fits 700 600 100 80 cutout.fits
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

/* The value of a pixel as it is stored. */
static double value(const struct sw_image *image, const void *pixels, size_t at)
{
    switch (image->bitpix) {
    case 8: return ((const uint8_t *)pixels)[at];
    case 16: return ((const int16_t *)pixels)[at];
    case 32: return ((const int32_t *)pixels)[at];
    case 64: return (double)((const int64_t *)pixels)[at];
    case -32: return ((const float *)pixels)[at];
    default: return ((const double *)pixels)[at];
    }
}

int main(int count, char **words)
{
    if (count != 7) {
        fprintf(stderr, "usage: cut URL X Y WIDTH HEIGHT OUTPUT\n");
        return 2;
    }
    int64_t box[4];
    for (int i = 0; i < 4; i++)
        box[i] = strtoll(words[2 + i], NULL, 10);
    int object = sw_open(words[1], O_RDONLY);
    if (object < 0)
        stop("open");
    if (sw_cut(object, NULL, box, SW_TRIM | SW_REPLACE, words[6]) < 0)
        stop("cut");

    /* How many bytes, then the pixels. */
    struct sw_image image;
    ssize_t bytes = sw_cut_pixels(object, NULL, box, SW_TRIM, &image, NULL, 0);
    if (bytes < 0)
        stop("cut");
    void *pixels = malloc(bytes);
    if (pixels == NULL || sw_cut_pixels(object, NULL, box, SW_TRIM, &image, pixels, bytes) < 0)
        stop("cut");
    double sum = 0;
    size_t pixel_count = bytes / (abs(image.bitpix) / 8);
    for (size_t at = 0; at < pixel_count; at++)
        sum += image.bzero + image.bscale * value(&image, pixels, at);
    printf("%lld x %lld pixels, mean %.6f\n", (long long)image.shape[0],
           (long long)image.shape[1], sum / pixel_count);
    free(pixels);
    return sw_close(object) == 0 ? 0 : 1;
}
