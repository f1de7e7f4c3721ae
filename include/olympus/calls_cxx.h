/* SPDX-License-Identifier: BSD-3-Clause */
/* The C++ side of calls.h: lists and options of calls as objects. Included by it; programs need none of these names. */
#ifndef OLYMPUS_CALLS_CXX_H
#define OLYMPUS_CALLS_CXX_H
#include <cstddef>
#include <type_traits>

namespace oly_cxx
{

/* -- lists ---------------------------------------------------------------------------------------------------------- */

/* Number of arguments in the text of a list: parts between commas that no bracket or quotation mark holds. An empty last one
 * does not count. */
constexpr int count_arguments(const char *text)
{
    int n = 0, open = 0;
    bool any = false;
    for (char before = ' '; *text; before = *text++) {
        bool letter = (before >= '0' && before <= '9') || (before >= 'a' && before <= 'z') ||
                      (before >= 'A' && before <= 'Z') || before == '_';
        if (*text == '"' || (*text == '\'' && !letter)) { /* an apostrophe in a number separates digits */
            char quote = *text++;
            for (; *text && *text != quote; text++)
                if (*text == '\\' && text[1])
                    text++;
            any = true;
            if (!*text)
                break;
        } else if (*text == ',' && open == 0) {
            n++;
            any = false;
        } else {
            open += *text == '(' || *text == '[' || *text == '{';
            open -= *text == ')' || *text == ']' || *text == '}';
            any = any || (*text != ' ' && *text != '\n' && *text != '\t');
        }
    }
    return n + any;
}

/* A number of the list's type, made from any other: as C converts. */
template <class T> struct number {
    T value;
    template <class N, class = std::enable_if_t<std::is_arithmetic<N>::value || std::is_enum<N>::value>>
    constexpr number(N n) : value(static_cast<T>(n))
    {
    }
};

/* The elements between the braces of a list. */
template <class T, class = void> struct element {
    using type = T;
    static constexpr const T &value(const T &x) { return x; }
};
template <class T> struct element<T, std::enable_if_t<std::is_arithmetic<T>::value>> {
    using type = number<T>;
    static constexpr T value(const number<T> &x) { return x.value; }
};

/* The values; as a temporary they live until the call that takes them returns. */
template <class T, std::size_t N> struct values {
    T item[N];
    const T *data() const { return item; }
};
/* Rows: OLY_PAIRS. */
template <class T, std::size_t M, std::size_t N> struct values<T[M], N> {
    T item[N][M];
    const T (*data() const)[M] { return item; }
};
struct nothing {
};

template <class T, int Count, std::size_t N>
constexpr std::enable_if_t<!std::is_array<T>::value, values<T, N>> list(const typename element<T>::type (&&given)[N])
{
    static_assert(Count == static_cast<int>(N), "put arguments with commas between < and > in parentheses");
    values<T, N> all{};
    for (std::size_t k = 0; k < N; k++)
        all.item[k] = element<T>::value(given[k]);
    return all;
}
template <class T, int Count, std::size_t N>
constexpr std::enable_if_t<std::is_array<T>::value, values<T, N>> list(const T (&&given)[N])
{
    values<T, N> all{};
    for (std::size_t k = 0; k < N; k++)
        for (std::size_t j = 0; j < std::extent<T>::value; j++)
            all.item[k][j] = given[k][j];
    return all;
}
template <class T, int Count> constexpr values<T, 1> list(nothing)
{
    static_assert(Count == 0, "a list that seemed empty is not");
    return {};
}

/* -- options -------------------------------------------------------------------------------------------------------- */

/* Options that are lists of numbers; OLY_AXES and similar macros call them. */
template <class T> struct options : T {
    void set_axes(int n, const int *list)
    {
        this->n_axis_list = n;
        this->axis_list = list;
        this->axes_given = true;
    }
    void set_argnums(int n, const int *list)
    {
        this->n_argnum_list = n;
        this->argnum_list = list;
    }
};

/* Structs being built on this thread, the innermost last: the value of an option may be a call with options. */
template <class T> struct workbench {
    static constexpr int most = 16;
    static inline thread_local options<T> under_way[most];
    static inline thread_local int depth = 0;
};

/* The first of the options' expressions; at its end (also by an exception) the workbench is restored. */
template <class T> struct begin_options {
    int before = workbench<T>::depth;
    begin_options() { workbench<T>::under_way[workbench<T>::depth++ % workbench<T>::most] = options<T>(); }
    ~begin_options() { workbench<T>::depth = before; }
    begin_options(const begin_options &) = delete;
    begin_options &operator=(const begin_options &) = delete;
};
template <class T> options<T> &options_here()
{
    return workbench<T>::under_way[(workbench<T>::depth - 1) % workbench<T>::most];
}
template <class T> T end_options()
{
    return workbench<T>::under_way[--workbench<T>::depth % workbench<T>::most];
}

} // namespace oly_cxx
#endif
