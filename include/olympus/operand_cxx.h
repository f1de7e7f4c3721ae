/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands in C++: what OLY_ARG makes of an array or a number. Included by <olympus/ops.h>; programs need none of these names.
 * */
#ifndef OLYMPUS_OPERAND_CXX_H
#define OLYMPUS_OPERAND_CXX_H

namespace oly_cxx
{

inline oly_operand operand(oly_array x)
{
    return oly_operand_array(x);
}
inline oly_operand operand(const oly_operand &x)
{
    return x;
}
inline oly_operand operand(bool x)
{
    return oly_operand_bool(x);
}
template <class T>
std::enable_if_t<std::is_integral<T>::value || (std::is_enum<T>::value && std::is_convertible<T, int64_t>::value),
                 oly_operand>
operand(T x)
{
    return static_cast<double>(x) < 0 ? oly_operand_int(static_cast<int64_t>(x))
                                      : oly_operand_unsigned(static_cast<uint64_t>(x));
}
template <class T> std::enable_if_t<std::is_floating_point<T>::value, oly_operand> operand(T x)
{
    return oly_operand_float(static_cast<double>(x));
}
/* std::complex, known by its parts */
template <class T>
auto operand(const T &x)
    -> std::enable_if_t<std::is_class<T>::value && std::is_floating_point<decltype(x.real() + x.imag())>::value,
                        oly_operand>
{
    return oly_operand_parts(static_cast<double>(x.real()), static_cast<double>(x.imag()));
}
template <class T> oly_operand operand(T *) = delete; /* an address or a string is not a number */
oly_operand operand(decltype(nullptr)) = delete;

/* An operand in a list: OLY_INDEXES. */
struct any_operand {
    oly_operand value;
    template <class T> any_operand(const T &x) : value(operand(x)) {}
};
template <> struct element<oly_operand, void> {
    using type = any_operand;
    static const oly_operand &value(const any_operand &x) { return x.value; }
};

/* An element type, where a number in its place is refused. */
inline oly_dtype type_only(oly_dtype dtype)
{
    return dtype;
}
template <class T> oly_dtype type_only(T) = delete; /* the value comes before the type */

} // namespace oly_cxx
#endif
