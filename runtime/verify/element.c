/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements as numbers. See element.h. */
#include "verify/element.h"
#include "core/element.h"
#include <math.h>
#include <string.h>

int oly_element_parts(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_COMPLEX ? 2 : 1;
}

/* A part as an element of its own: its type and address. */
static const char *find_part(oly_dtype *dtype, const void *element, int part)
{
    oly_dtype real = oly_dtype_real(*dtype);
    const char *at = (const char *)element + (size_t)part * oly_dtype_size(real);
    *dtype = real;
    return at;
}

double oly_element_part(oly_dtype dtype, const void *element, int part)
{
    const char *at = find_part(&dtype, element, part);
    return oly_real_at(dtype, at);
}

void oly_element_set_part(oly_dtype dtype, void *element, int part, double value)
{
    char *at = (char *)find_part(&dtype, element, part);
    oly_set_real(dtype, at, value);
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
    return oly_dtype_kind(dtype) < OLY_KIND_FLOAT ? 0x1p-23 : oly_dtype_epsilon(dtype);
}
