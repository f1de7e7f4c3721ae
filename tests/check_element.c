/* Elements of any type as doubles, see check_element.h. */
#include "check_element.h"
#include "core/half.h"
#include "graph/type.h"
#include <string.h>

int element_parts(oly_dtype dtype)
{
    return oly_dtype_kind(dtype) == OLY_KIND_COMPLEX ? 2 : 1;
}

double element_part(oly_dtype dtype, const void *data, int64_t i, int part)
{
    switch (dtype) {
    case OLY_BOOL: return ((const unsigned char *)data)[i];
    case OLY_INT8: return ((const int8_t *)data)[i];
    case OLY_INT16: return ((const int16_t *)data)[i];
    case OLY_INT32: return ((const int32_t *)data)[i];
    case OLY_INT64: return (double)((const int64_t *)data)[i];
    case OLY_UINT8: return ((const uint8_t *)data)[i];
    case OLY_UINT16: return ((const uint16_t *)data)[i];
    case OLY_UINT32: return ((const uint32_t *)data)[i];
    case OLY_UINT64: return (double)((const uint64_t *)data)[i];
    case OLY_FLOAT16: return (double)oly_float_of_half(((const uint16_t *)data)[i]);
    case OLY_BFLOAT16: return (double)oly_float_of_bfloat(((const uint16_t *)data)[i]);
    case OLY_FLOAT32: return (double)((const float *)data)[i];
    case OLY_COMPLEX64: return (double)((const float *)data)[2 * i + part];
    case OLY_COMPLEX128: return ((const double *)data)[2 * i + part];
    default: return ((const double *)data)[i];
    }
}

void set_element_part(oly_dtype dtype, void *data, int64_t i, int part, double x)
{
    int64_t whole = x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : 0;
    switch (dtype) {
    case OLY_BOOL: ((unsigned char *)data)[i] = x != 0; break;
    case OLY_INT8: ((int8_t *)data)[i] = (int8_t)whole; break;
    case OLY_INT16: ((int16_t *)data)[i] = (int16_t)whole; break;
    case OLY_INT32: ((int32_t *)data)[i] = (int32_t)whole; break;
    case OLY_INT64: ((int64_t *)data)[i] = (int64_t)whole; break;
    case OLY_UINT8: ((uint8_t *)data)[i] = (uint8_t)whole; break;
    case OLY_UINT16: ((uint16_t *)data)[i] = (uint16_t)whole; break;
    case OLY_UINT32: ((uint32_t *)data)[i] = (uint32_t)whole; break;
    case OLY_UINT64:
        ((uint64_t *)data)[i] = x >= 0x1p64 ? UINT64_MAX : x >= 0x1p63 ? (uint64_t)x : (uint64_t)whole;
        break;
    case OLY_FLOAT16: ((uint16_t *)data)[i] = oly_half_of_float(oly_float_rounded_to_odd(x)); break;
    case OLY_BFLOAT16: ((uint16_t *)data)[i] = oly_bfloat_of_float(oly_float_rounded_to_odd(x)); break;
    case OLY_FLOAT32: ((float *)data)[i] = (float)x; break;
    case OLY_COMPLEX64: ((float *)data)[2 * i + part] = (float)x; break;
    case OLY_COMPLEX128: ((double *)data)[2 * i + part] = x; break;
    default: ((double *)data)[i] = x; break;
    }
}

bool element_is_unsigned(oly_dtype dtype)
{
    return dtype >= OLY_UINT8 && dtype <= OLY_UINT64;
}

bool element_is_inexact(oly_dtype dtype)
{
    return dtype >= OLY_FLOAT16;
}

double element_epsilon(oly_dtype dtype)
{
    switch (dtype) {
    case OLY_FLOAT16: return 0x1p-10;
    case OLY_BFLOAT16: return 0x1p-7;
    case OLY_FLOAT32:
    case OLY_COMPLEX64: return 0x1p-23;
    default: return 0x1p-52;
    }
}

double _Complex element_of(oly_dtype dtype, const void *data, int64_t i)
{
    return __builtin_complex(element_part(dtype, data, i, 0),
                             element_parts(dtype) > 1 ? element_part(dtype, data, i, 1) : 0.0);
}

void set_element(oly_dtype dtype, void *data, int64_t i, double _Complex x)
{
    set_element_part(dtype, data, i, 0, __real__ x);
    if (element_parts(dtype) > 1)
        set_element_part(dtype, data, i, 1, __imag__ x);
}
