/* SPDX-License-Identifier: BSD-3-Clause */
/* How calls are written: call sites, lists and options, with the same notation in C11 and C++17. The macros of the other headers
 * are built from these; programs need none of these names. Included by <olympus/base.h>.
 *
 * A macro with optional arguments passes them on followed by an empty one, since ISO C requires one; so lists and options may end
 * in a comma. */
#ifndef OLYMPUS_CALLS_H
#define OLYMPUS_CALLS_H

#define OLY_API __attribute__((visibility("default")))

/* -- call sites ---------------------------------------------------------------------------------------------------
 * The name of every public function is also a macro, which records file and line before it calls the function, so that messages
 * and the order check can name the caller's line. `written` is the operation's name in messages, `function` the function that is
 * called: oly_sum and oly_sum_with. */
#ifdef __cplusplus
extern "C" {
#endif
OLY_API void oly_at(const char *file, int line, const char *written, const char *function);
#ifdef __cplusplus
}
#endif
#define OLY_AT(function)             OLY_AT_AS(function, function)
#define OLY_AT_AS(written, function) (oly_at(__FILE__, __LINE__, #written, #function), function)

/* -- arguments one by one -------------------------------------------------------------------------------------------
 * OLY_EACH_(what, context, a, b): what(context, a) what(context, b). Up to 20 arguments. */
#define OLY_COUNT_ARGUMENTS_(...)                                                                                      \
    OLY_COUNT_OF_(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define OLY_COUNT_OF_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, count, ...) count
#define OLY_EACH_(what, context, ...)                                                         OLY_EACH_OF_(OLY_COUNT_ARGUMENTS_(__VA_ARGS__), what, context, __VA_ARGS__)
#define OLY_EACH_OF_(count, what, context, ...)                                               OLY_EACH_OF_N_(count, what, context, __VA_ARGS__)
#define OLY_EACH_OF_N_(count, what, context, ...)                                             OLY_EACH_##count##_(what, context, __VA_ARGS__)
#define OLY_EACH_1_(what, context, x)                                                         what(context, x)
#define OLY_EACH_2_(what, context, x, ...)                                                    what(context, x) OLY_EACH_1_(what, context, __VA_ARGS__)
#define OLY_EACH_3_(what, context, x, ...)                                                    what(context, x) OLY_EACH_2_(what, context, __VA_ARGS__)
#define OLY_EACH_4_(what, context, x, ...)                                                    what(context, x) OLY_EACH_3_(what, context, __VA_ARGS__)
#define OLY_EACH_5_(what, context, x, ...)                                                    what(context, x) OLY_EACH_4_(what, context, __VA_ARGS__)
#define OLY_EACH_6_(what, context, x, ...)                                                    what(context, x) OLY_EACH_5_(what, context, __VA_ARGS__)
#define OLY_EACH_7_(what, context, x, ...)                                                    what(context, x) OLY_EACH_6_(what, context, __VA_ARGS__)
#define OLY_EACH_8_(what, context, x, ...)                                                    what(context, x) OLY_EACH_7_(what, context, __VA_ARGS__)
#define OLY_EACH_9_(what, context, x, ...)                                                    what(context, x) OLY_EACH_8_(what, context, __VA_ARGS__)
#define OLY_EACH_10_(what, context, x, ...)                                                   what(context, x) OLY_EACH_9_(what, context, __VA_ARGS__)
#define OLY_EACH_11_(what, context, x, ...)                                                   what(context, x) OLY_EACH_10_(what, context, __VA_ARGS__)
#define OLY_EACH_12_(what, context, x, ...)                                                   what(context, x) OLY_EACH_11_(what, context, __VA_ARGS__)
#define OLY_EACH_13_(what, context, x, ...)                                                   what(context, x) OLY_EACH_12_(what, context, __VA_ARGS__)
#define OLY_EACH_14_(what, context, x, ...)                                                   what(context, x) OLY_EACH_13_(what, context, __VA_ARGS__)
#define OLY_EACH_15_(what, context, x, ...)                                                   what(context, x) OLY_EACH_14_(what, context, __VA_ARGS__)
#define OLY_EACH_16_(what, context, x, ...)                                                   what(context, x) OLY_EACH_15_(what, context, __VA_ARGS__)
#define OLY_EACH_17_(what, context, x, ...)                                                   what(context, x) OLY_EACH_16_(what, context, __VA_ARGS__)
#define OLY_EACH_18_(what, context, x, ...)                                                   what(context, x) OLY_EACH_17_(what, context, __VA_ARGS__)
#define OLY_EACH_19_(what, context, x, ...)                                                   what(context, x) OLY_EACH_18_(what, context, __VA_ARGS__)
#define OLY_EACH_20_(what, context, x, ...)                                                   what(context, x) OLY_EACH_19_(what, context, __VA_ARGS__)

/* 1 if there are none, else 0: tests whether a comma appears next to, after and around OLY_COMMA_. */
#define OLY_IS_EMPTY_(...)                                                                                             \
    OLY_IS_EMPTY_OF_(OLY_HAS_COMMA_(__VA_ARGS__), OLY_HAS_COMMA_(OLY_COMMA_ __VA_ARGS__),                              \
                     OLY_HAS_COMMA_(__VA_ARGS__()), OLY_HAS_COMMA_(OLY_COMMA_ __VA_ARGS__()))
#define OLY_IS_EMPTY_OF_(a, b, c, d)   OLY_IS_EMPTY_OF_N_(a, b, c, d)
#define OLY_IS_EMPTY_OF_N_(a, b, c, d) OLY_HAS_COMMA_(OLY_EMPTY_##a##b##c##d##_)
#define OLY_EMPTY_0001_                ,
#define OLY_COMMA_(...)                ,
#define OLY_HAS_COMMA_(...)            OLY_COUNT_OF_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)

/* -- lists and options ----------------------------------------------------------------------------------------------
 * OLY_LIST_(type, none, ...)      a pointer to the values, which live until the call returns; `none`: any value of the type
 * OLY_COUNTED_(type, none, ...)   two arguments, their number and that pointer
 * OLY_OPTIONS_(type, ...)         a struct from ".name = value, ..." */
#ifndef __cplusplus
/* A leading value avoids empty lists, which ISO C does not have. */
#define OLY_LIST_(type, none, ...) ((type const[]){none, __VA_ARGS__} + 1)
#define OLY_COUNTED_(type, none, ...)                                                                                  \
    (int)(sizeof((type const[]){none, __VA_ARGS__}) / sizeof(type) - 1), OLY_LIST_(type, none, __VA_ARGS__)
#define OLY_OPTIONS_(type, ...) ((type){.first_ = 0, __VA_ARGS__})
#else
#include <olympus/calls_cxx.h>
#define OLY_LIST_(type, none, ...)    OLY_LIST_OF_(type, __VA_ARGS__) /* once more, so that arguments are expanded first */
#define OLY_COUNTED_(type, none, ...) OLY_COUNT_LIST_(__VA_ARGS__), OLY_LIST_OF_(type, __VA_ARGS__)
#define OLY_COUNT_LIST_(...)          oly_cxx::count_arguments(#__VA_ARGS__)
#define OLY_LIST_OF_(type, ...)       (oly_cxx::list<type, oly_cxx::count_arguments(#__VA_ARGS__)>({__VA_ARGS__}).data())
/* C++17 has no designators: each option is an assignment to the struct that is being built. */
#define OLY_OPTIONS_(type, ...)                                                                                        \
    (oly_cxx::begin_options<type>(), OLY_EACH_(OLY_SET_OPTION_, type, __VA_ARGS__) oly_cxx::end_options<type>())
#define OLY_SET_OPTION_(type, option) (void)(oly_cxx::options_here<type>() option),
#endif
#endif
