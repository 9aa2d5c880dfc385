/*
 * Average images of 16-bit pixels over a day and over blocks, as coarse.py does.
 *
 * The environment names a list of the images, the output, and the value of the parameter.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 2880
#define CARD 80

static void fail(const char *path, const char *what)
{
    fprintf(stderr, "%s: %s\n", path, what);
    exit(1);
}

/* Return the number of a card of the header. */
static long number(const char *header, long cards, const char *key, long otherwise)
{
    for (long card = 0; card < cards; card++)
        if (strncmp(header + card * CARD, key, strlen(key)) == 0 && header[card * CARD + 8] == '=')
            return atol(header + card * CARD + 9);
    return otherwise;
}

/* Read the header of an image; its pixels come next. */
static void read_header(FILE *file, const char *path, long *width, long *height)
{
    char *header = NULL;
    long bytes = 0;
    for (int is_end = 0; !is_end; bytes += BLOCK) {
        header = realloc(header, bytes + BLOCK);
        if (header == NULL || fread(header + bytes, 1, BLOCK, file) != BLOCK)
            fail(path, "expected a FITS header, found its start");
        for (long card = 0; card < BLOCK; card += CARD)
            is_end |= strncmp(header + bytes + card, "END     ", 8) == 0;
    }
    long cards = bytes / CARD;
    if (number(header, cards, "BITPIX  ", 0) != 16 || number(header, cards, "NAXIS   ", 0) != 2
        || number(header, cards, "BZERO   ", 0) != 0)
        fail(path, "expected an image of 16-bit pixels with a sign");
    *width = number(header, cards, "NAXIS1  ", 0);
    *height = number(header, cards, "NAXIS2  ", 0);
    free(header);
}

/* Add the pixels of an image to those of its blocks. */
static void add(FILE *file, const char *path, long width, long height, long factor, double *sums)
{
    uint8_t *row = malloc(2 * width + 1);
    for (long y = 0; y < height / factor * factor; y++) {
        if (row == NULL || fread(row, 2, width, file) != (size_t)width)
            fail(path, "expected all pixels, found the first of them");
        double *out = sums + y / factor * (width / factor);
        for (long x = 0; x < width / factor * factor; x++)
            out[x / factor] += (int16_t)(row[2 * x] << 8 | row[2 * x + 1]);
    }
    free(row);
}

/* Write means as an image of 32-bit floats. */
static void write_image(const char *path, const double *sums, long width, long height, double count)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        fail(path, "cannot be written");
    char header[BLOCK + 1] = "";
    snprintf(header, sizeof header,
             "%-8s= %20s%-50s%-8s= %20d%-50s%-8s= %20d%-50s%-8s= %20ld%-50s%-8s= %20ld%-50s%-80s",
             "SIMPLE", "T", "", "BITPIX", -32, "", "NAXIS", 2, "", "NAXIS1", width, "", "NAXIS2",
             height, "", "END");
    memset(header + strlen(header), ' ', BLOCK - strlen(header));
    fwrite(header, 1, BLOCK, file);
    long pixels = width * height;
    for (long pixel = 0; pixel < pixels; pixel++) {
        float mean = (float)(sums[pixel] / count);
        uint32_t bits;
        memcpy(&bits, &mean, sizeof bits);
        uint8_t bytes[4] = {bits >> 24, bits >> 16, bits >> 8, bits};
        fwrite(bytes, 1, 4, file);
    }
    for (long rest = 4 * pixels; rest % BLOCK != 0; rest++)
        fputc(0, file);
    if (fclose(file) != 0)
        fail(path, "cannot be written");
}

int main(void)
{
    FILE *images = fopen(getenv("SWATHE_GRANULES"), "r");
    long factor = atol(getenv("SWATHE_PARAMETER_FACTOR"));
    double *sums = NULL;
    long width = 0, height = 0, count = 0;
    char path[4096];
    while (images != NULL && fgets(path, sizeof path, images) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        FILE *file = fopen(path, "rb");
        if (file == NULL)
            fail(path, "cannot be read");
        long columns, rows;
        read_header(file, path, &columns, &rows);
        if (count++ == 0) {
            width = columns;
            height = rows;
            sums = calloc((width / factor) * (height / factor) + 1, sizeof *sums);
        }
        if (columns != width || rows != height || sums == NULL)
            fail(path, "expected an image of the size of the first");
        add(file, path, width, height, factor, sums);
        fclose(file);
    }
    write_image(getenv("SWATHE_OUTPUT_MEAN"), sums, width / factor, height / factor,
                (double)count * factor * factor);
    return 0;
}
