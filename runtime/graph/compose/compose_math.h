/* SPDX-License-Identifier: BSD-3-Clause */
/* The compositions of elementwise mathematical functions, of activations and of operations on bits. As compose.h. */
#ifndef OLY_GRAPH_COMPOSE_MATH_H
#define OLY_GRAPH_COMPOSE_MATH_H
#include "graph/compose/compose.h"

/* compose_math.c */
oly_compose oly_compose_numeric;         /* recipe.op; bools become int32 */
oly_compose oly_compose_floating_binary; /* recipe.op of two operands converted to floating point */
oly_compose oly_compose_numeric_binary;  /* recipe.op of two operands, bools become int32 */
oly_compose oly_compose_logical;         /* recipe.op of two truths */
oly_compose oly_compose_right_shift;
oly_compose oly_compose_whole; /* recipe.op; integers stay as they are */
oly_compose oly_compose_trunc;
oly_compose oly_compose_round;       /* to params.dimension decimals */
oly_compose oly_compose_integer_pow; /* to the power params.dimension */
oly_compose oly_compose_power;
oly_compose oly_compose_reciprocal;
oly_compose oly_compose_scaled; /* times params.value.f */
oly_compose oly_compose_log2;
oly_compose oly_compose_log10;
oly_compose oly_compose_quotient;
oly_compose oly_compose_floor_divide;
oly_compose oly_compose_remainder;
oly_compose oly_compose_fmod;
oly_compose oly_compose_ignoring_nan; /* recipe.op: gt, lt */
oly_compose oly_compose_clamp;
oly_compose oly_compose_clip;
oly_compose oly_compose_isnan;
oly_compose oly_compose_isinf;
oly_compose oly_compose_isfinite;
oly_compose oly_compose_isinfinity; /* the one params.value.f is */
oly_compose oly_compose_nan_to_num;
oly_compose oly_compose_signbit;
oly_compose oly_compose_copysign;
oly_compose oly_compose_hypot;
oly_compose oly_compose_sinc;
oly_compose oly_compose_angle;
oly_compose oly_compose_select_n;

/* compose_activation.c */
oly_compose oly_compose_relu6;
oly_compose oly_compose_elu;
oly_compose oly_compose_leaky_relu;
oly_compose oly_compose_gelu; /* recipe.op: erfc, or tanh for the approximation */
oly_compose oly_compose_silu;
oly_compose oly_compose_softplus;
oly_compose oly_compose_log_sigmoid;

/* compose_bits.c */
oly_compose oly_compose_bitcast; /* to params.dtype; of another size: one dimension more or less */
#endif
