/* SPDX-License-Identifier: BSD-3-Clause */
/* Pictures of matrices as PNG files (png.h). One row of pixels is computed and written at a time. */
#include "array/png.h"
#include "core/error.h"
#include "core/min_max.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* -- colours -------------------------------------------------------------------------------------------- */

enum { GREY = 128 };

/* Equally spaced points of the colour scale. Their lightness (CIE L*: 0 to 98, in nearly equal steps) carries the
 * value, so the picture reads the same in grey; hue goes from blue over red to yellow. Colours in between are
 * interpolated. */
static const unsigned char scale[][3] = {
    {0, 0, 4},      {28, 16, 68},   {80, 18, 123},   {130, 37, 129},  {181, 54, 122},
    {229, 80, 100}, {251, 135, 97}, {254, 194, 135}, {252, 253, 191},
};
enum { SCALE_STEPS = sizeof scale / sizeof scale[0] - 1 };

static void colour_of(double value, double low, double high, unsigned char *rgb)
{
    if (isnan(value)) {
        memset(rgb, GREY, 3);
        return;
    }
    double place = value <= low    ? 0
                   : value >= high ? SCALE_STEPS
                                   : (value / 2 - low / 2) / (high / 2 - low / 2) * SCALE_STEPS;
    int step = place >= SCALE_STEPS ? SCALE_STEPS - 1 : (int)place;
    for (int c = 0; c < 3; c++)
        rgb[c] = (unsigned char)lround(scale[step][c] + (place - step) * (scale[step + 1][c] - scale[step][c]));
}

/* -- size ----------------------------------------------------------------------------------------------- */

typedef struct picture {
    const float *values;
    int64_t height, width; /* of the matrix */
    double low, high;
    int64_t rows, columns; /* after averaging */
    int factor;            /* pixels per element along each side */
} picture;

static int64_t averaged_side(int64_t side, int64_t longest)
{
    if (longest <= OLY_PNG_LARGEST)
        return side;
    return oly_larger(1, llround((double)side * OLY_PNG_LARGEST / (double)longest));
}

static void choose_size(picture *p)
{
    int64_t longest = oly_larger(p->height, p->width);
    p->rows = averaged_side(p->height, longest);
    p->columns = averaged_side(p->width, longest);
    int64_t wanted = (OLY_PNG_ENLARGED - 1) / oly_smaller(p->rows, p->columns) + 1;
    int64_t allowed = OLY_PNG_LARGEST / oly_larger(p->rows, p->columns);
    p->factor = (int)oly_larger(1, oly_smaller(wanted, allowed));
}

/* -- rows ----------------------------------------------------------------------------------------------- */

/* Mean of the elements of pixel (i, j); NaN if one of them is. */
static double mean_at(const picture *p, int64_t i, int64_t j)
{
    int64_t top = i * p->height / p->rows, bottom = (i + 1) * p->height / p->rows;
    int64_t left = j * p->width / p->columns, right = (j + 1) * p->width / p->columns;
    double sum = 0;
    for (int64_t row = top; row < bottom; row++)
        for (int64_t column = left; column < right; column++)
            sum += (double)p->values[row * p->width + column];
    return sum / (double)((bottom - top) * (right - left));
}

static void fill_row(const picture *p, int64_t i, unsigned char *pixels)
{
    for (int64_t j = 0; j < p->columns; j++) {
        unsigned char rgb[3];
        colour_of(mean_at(p, i, j), p->low, p->high, rgb);
        for (int copy = 0; copy < p->factor; copy++, pixels += 3)
            memcpy(pixels, rgb, 3);
    }
}

/* -- libpng --------------------------------------------------------------------------------------------- */

/* State of libpng's callbacks. libpng returns by longjmp, so everything that must survive it is in here. */
typedef struct writer {
    const picture *picture;
    FILE *file;
    unsigned char *pixels; /* one row */
    png_structp png;
    png_infop info;
    jmp_buf out;
    bool out_of_memory;
    size_t bytes; /* of the allocation that failed */
    int error;    /* errno of the write that failed */
    char reason[128];
} writer;

static void *take_memory(png_structp png, png_alloc_size_t bytes)
{
    void *memory = oly_malloc(bytes);
    if (!memory) {
        writer *w = png_get_mem_ptr(png);
        w->out_of_memory = true;
        w->bytes = bytes;
    }
    return memory;
}

static void give_memory(png_structp png, void *memory)
{
    (void)png;
    oly_release(memory);
}

static void leave(png_structp png, const char *reason)
{
    writer *w = png_get_error_ptr(png);
    snprintf(w->reason, sizeof w->reason, "%s", reason);
    longjmp(w->out, 1);
}

static void ignore_warning(png_structp png, const char *reason)
{
    (void)png;
    (void)reason;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t n)
{
    writer *w = png_get_io_ptr(png);
    if (fwrite(bytes, 1, n, w->file) != n) {
        w->error = errno;
        png_error(png, strerror(errno));
    }
}

static void flush_bytes(png_structp png)
{
    (void)png; /* fclose flushes, and is checked */
}

static void write_rows(writer *w)
{
    const picture *p = w->picture;
    png_set_write_fn(w->png, w, write_bytes, flush_bytes);
    png_set_IHDR(w->png, w->info, (png_uint_32)(p->columns * p->factor), (png_uint_32)(p->rows * p->factor), 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (int64_t i = 0; i < p->rows; i++) {
        fill_row(p, i, w->pixels);
        for (int copy = 0; copy < p->factor; copy++)
            png_write_row(w->png, w->pixels);
    }
    png_write_end(w->png, w->info);
}

static bool encode(writer *w)
{
    if (setjmp(w->out))
        return false;
    w->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, w, leave, ignore_warning, w, take_memory, give_memory);
    if (w->png)
        w->info = png_create_info_struct(w->png);
    if (!w->png || !w->info)
        return false;
    write_rows(w);
    return true;
}

/* -- the file ------------------------------------------------------------------------------------------- */

static oly_status cannot_write(const char *path, const char *reason)
{
    return oly_fail(OLY_IO, "cannot write the picture %s: %s", path, reason);
}

/* Writes the picture to the file and closes it. */
static oly_status write_file(const picture *p, const char *path, FILE *file)
{
    size_t row_bytes = (size_t)(p->columns * p->factor) * 3;
    writer w = {.picture = p, .file = file, .pixels = oly_malloc(row_bytes)};
    if (!w.pixels) {
        fclose(file);
        return oly_out_of_memory(row_bytes, "writing a picture");
    }
    bool written = encode(&w);
    png_destroy_write_struct(&w.png, &w.info);
    oly_release(w.pixels);
    if (fclose(w.file) != 0 && written) {
        written = false;
        snprintf(w.reason, sizeof w.reason, "%s", strerror(errno));
    }
    if (written)
        return OLY_OK;
    if (w.out_of_memory)
        return oly_out_of_memory(w.bytes, "writing a picture");
    return cannot_write(path, w.reason[0] ? w.reason : "libpng does not start");
}

/* Only a regular file may be replaced: no device, no folder, not the target of a link. */
static oly_status check_target(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno == ENOENT ? OLY_OK : cannot_write(path, strerror(errno));
    return S_ISREG(found.st_mode) ? OLY_OK : cannot_write(path, "it is there, and no regular file");
}

enum { SUFFIX = sizeof ".0123456789abcdef" };

/* Creates a new file beside the picture; it fails if the name exists. NULL: see errno. */
static FILE *open_fresh(const char *path, char *name, size_t size)
{
    static unsigned made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int descriptor = -1;
    for (int k = 0; k < 100 && descriptor < 0 && (k == 0 || errno == EEXIST); k++) {
        unsigned long number = (unsigned long)now.tv_nsec * 31 + (unsigned long)getpid() * 1000003 + ++made;
        snprintf(name, size, "%s.%lx", path, number);
        descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    }
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
    if (!file && descriptor >= 0) {
        close(descriptor);
        unlink(name);
    }
    return file;
}

/* Written beside its path first, so that the picture appears whole or not at all. */
static oly_status write_and_rename(const picture *p, const char *path, char *temporary, size_t size)
{
    OLY_TRY(check_target(path));
    FILE *file = open_fresh(path, temporary, size);
    if (!file)
        return cannot_write(path, strerror(errno));
    oly_status status = write_file(p, path, file);
    if (status == OLY_OK && rename(temporary, path) != 0)
        status = cannot_write(path, strerror(errno));
    if (status != OLY_OK)
        unlink(temporary);
    return status;
}

oly_status oly_png_write(const char *path, int64_t height, int64_t width, const float *values, double low, double high)
{
    if (height < 1 || width < 1)
        return oly_fail(OLY_SHAPE, "picture %s: a matrix of %" PRId64 " x %" PRId64 " has no pixels", path, height,
                        width);
    if (!isfinite(low) || !isfinite(high) || low >= high)
        return oly_fail(OLY_INVALID, "picture %s: colours from %g to %g; the first must be less than the second", path,
                        low, high);
    picture p = {.values = values, .height = height, .width = width, .low = low, .high = high};
    choose_size(&p);
    size_t bytes = strlen(path) + SUFFIX;
    char *temporary = oly_malloc(bytes);
    if (!temporary)
        return oly_out_of_memory(bytes, "writing a picture");
    oly_status status = write_and_rename(&p, path, temporary, bytes);
    oly_release(temporary);
    return status;
}
