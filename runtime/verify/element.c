/* Elements as numbers. See element.h. */
#include "verify/element.h"
#include "core/half.h"
#include <math.h>
#include <string.h>

int oly_element_parts(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_COMPLEX ? 2 : 1;
}

/* The part as an element of its own: its type and where it is. */
static const char *find_part(oly_dtype *dtype, const void *element, int part)
{
    oly_dtype real = oly_dtype_real(*dtype);
    const char *at = (const char *)element + (size_t)part * oly_dtype_size(real);
    *dtype = real;
    return at;
}

#define READ(type)                                                                                                     \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, at, sizeof x);                                                                                      \
        return (double)x;                                                                                              \
    }

static uint16_t short_at(const char *at)
{
    uint16_t x;
    memcpy(&x, at, sizeof x);
    return x;
}

double oly_element_part(oly_dtype dtype, const void *element, int part)
{
    const char *at = find_part(&dtype, element, part);
    switch (dtype) {
    case OLY_BOOL: READ(uint8_t)
    case OLY_INT8: READ(int8_t)
    case OLY_INT16: READ(int16_t)
    case OLY_INT32: READ(int32_t)
    case OLY_INT64: READ(int64_t)
    case OLY_UINT8: READ(uint8_t)
    case OLY_UINT16: READ(uint16_t)
    case OLY_UINT32: READ(uint32_t)
    case OLY_UINT64: READ(uint64_t)
    case OLY_FLOAT16: return oly_float_of_half(short_at(at));
    case OLY_BFLOAT16: return oly_float_of_bfloat(short_at(at));
    case OLY_FLOAT32: READ(float)
    case OLY_FLOAT64: READ(double)
    default: return 0;
    }
}

void oly_element_set_part(oly_dtype dtype, void *element, int part, double value)
{
    char *at = (char *)find_part(&dtype, element, part);
    float single = (float)value;
    uint16_t half = dtype == OLY_FLOAT16 ? oly_half_of_float(single) : oly_bfloat_of_float(single);
    switch (dtype) {
    case OLY_FLOAT16:
    case OLY_BFLOAT16: memcpy(at, &half, sizeof half); break;
    case OLY_FLOAT32: memcpy(at, &single, sizeof single); break;
    case OLY_FLOAT64: memcpy(at, &value, sizeof value); break;
    default: break;
    }
}

bool oly_element_same(oly_dtype dtype, const void *a, const void *b)
{
    oly_dtype real = oly_dtype_real(dtype);
    size_t bytes = oly_dtype_size(real);
    for (int part = 0; part < oly_element_parts(dtype); part++)
        if (memcmp((const char *)a + (size_t)part * bytes, (const char *)b + (size_t)part * bytes, bytes) != 0 &&
            !(isnan(oly_element_part(dtype, a, part)) && isnan(oly_element_part(dtype, b, part))))
            return false;
    return true;
}

double oly_element_distance(oly_dtype dtype, const void *a, const void *b)
{
    double most = 0;
    for (int part = 0; part < oly_element_parts(dtype); part++) {
        double x = oly_element_part(dtype, a, part), y = oly_element_part(dtype, b, part), apart = fabs(x - y);
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        most = isnan(apart) ? INFINITY : fmax(most, apart);
    }
    return most;
}

double oly_element_epsilon(oly_dtype dtype)
{
    switch (oly_dtype_real(dtype)) {
    case OLY_FLOAT16: return 0x1p-10;
    case OLY_BFLOAT16: return 0x1p-7;
    case OLY_FLOAT64: return 0x1p-52;
    default: return 0x1p-23;
    }
}
