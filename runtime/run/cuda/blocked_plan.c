/* SPDX-License-Identifier: BSD-3-Clause */
/* What a launch over fields computes, and in which tiles. See blocked_plan.h. */
#include "run/cuda/blocked_plan.h"
#include "core/optimisation.h"
#include <stdlib.h>
#include <string.h>

/* MOST_CODE: instructions in a kernel's text. */
enum {
    SHARED_BYTES = 48 << 10, /* that every block may have */
    LEFT_BYTES = 32 << 10,   /* of a processor, for its cache */
    OWN_BYTES = 1 << 10,     /* of each block, the system's */
    MOST_STEPS = 24,
    MOST_CODE = 1200
};

typedef oly_blocked_body body;
typedef oly_blocked_extent extent;
typedef oly_blocked_steps unrolled;

/* -- the body of the loop --------------------------------------------------------------------------------------------------------------- */

oly_tile_program oly_cuda_taps_program(const oly_tiling_piece *piece, oly_dtype dtype, oly_cuda_taps *t)
{
    enum { COEFFICIENT = OLY_STENCIL_TAPS, SUM };
    memset(t, 0, sizeof *t);
    t->dtype = (uint8_t)dtype;
    for (int k = 0; k < piece->n_taps; k++) {
        oly_tile_instruction *by = &t->code[2 * k], *sum = by + 1;
        by->op = OLY_TILE_splat;
        by->in[0] = by->in[1] = by->in[2] = -1;
        by->out = COEFFICIENT;
        if (dtype == OLY_FLOAT32)
            by->value.f32 = (float)piece->coefficient[k];
        else
            by->value.f = piece->coefficient[k];
        sum->op = k == 0 ? OLY_TILE_mul : OLY_TILE_fma;
        sum->in[0] = COEFFICIENT;
        sum->in[1] = (int16_t)k;
        sum->in[2] = k == 0 ? -1 : t->to;
        sum->out = t->to = (int16_t)(SUM + (k & 1));
        by->dtype = by->to = sum->dtype = sum->to = t->dtype;
        t->from[k] = (int16_t)k;
        t->dtypes[k] = t->dtype;
    }
    return (oly_tile_program){.n_instructions = 2 * piece->n_taps,
                              .instructions = t->code,
                              .n_loads = piece->n_taps,
                              .n_stores = 1,
                              .load_register = t->from,
                              .load_dtype = t->dtypes,
                              .store_register = &t->to,
                              .store_dtype = &t->dtype,
                              .n_registers = SUM + 2};
}

/* The number of the value among those that the stage reads; -1: too many. */
static int read_number(body *b, int stage, oly_tiling_ref of)
{
    oly_field_stage *s = &b->stages[stage];
    for (int k = 0; k < s->n_reads; k++)
        if (b->reads[stage][k].kind == of.kind && b->reads[stage][k].index == of.index)
            return k;
    if (s->n_reads == OLY_FIELD_READS)
        return -1;
    s->fixed[s->n_reads] = of.kind == OLY_TILING_FIXED;
    b->reads[stage][s->n_reads] = of;
    return s->n_reads++;
}

static bool add_load(body *b, int stage, const oly_tiling_load *from, int dtype)
{
    if (b->n_loads == OLY_BLOCKED_LOADS)
        return false;
    oly_field_load *load = &b->loads[b->n_loads++];
    memset(load, 0, sizeof *load);
    for (int d = 0; d < b->form->rank; d++) {
        if (llabs(from->shift[d]) > OLY_BLOCKED_LARGEST)
            return false;
        load->shift[b->shift + d] = (int32_t)from->shift[d];
    }
    load->read = from->of.kind == OLY_TILING_COUNTER ? -1 : read_number(b, stage, from->of);
    return load->read >= 0 || (from->of.kind == OLY_TILING_COUNTER && dtype == OLY_INT32);
}

static bool add_piece(body *b, int stage, const oly_tiling_piece *piece)
{
    oly_field_piece *to = &b->pieces[b->n_pieces];
    bool machine = piece->machine.n_instructions > 0, taps = piece->n_taps && !machine;
    if (b->n_pieces == OLY_FIELD_PIECES || (taps && b->n_taps == OLY_BLOCKED_TAPS))
        return false;
    b->boxes[b->n_pieces++] = piece;
    to->loads = &b->loads[b->n_loads];
    if (taps)
        to->program = oly_cuda_taps_program(piece, b->form->stages[stage].node->type.dtype, &b->taps[b->n_taps++]);
    else
        to->program = machine ? piece->machine : piece->program;
    for (int k = 0; k < to->program.n_loads; k++)
        if (!add_load(b, stage, machine ? &piece->machine_loads[k] : &piece->loads[taps ? piece->tap[k] : k],
                      to->program.load_dtype[k]))
            return false;
    b->n_code += to->program.n_instructions;
    return b->n_code <= MOST_CODE;
}

static bool fits_stage(body *b, int stage)
{
    const oly_tiling_stage *from = &b->form->stages[stage];
    oly_field_stage *s = &b->stages[stage];
    s->computed = !from->inlined;
    s->first = b->shift;
    s->pieces = &b->pieces[b->n_pieces];
    for (int d = 0; d < 3; d++)
        s->whole[d] = 1;
    for (int d = 0; d < b->form->rank; d++) {
        s->align[b->shift + d] = (int32_t)from->align[d];
        s->whole[b->shift + d] = (int32_t)from->node->type.shape[d];
    }
    for (int k = 0; k < from->n_pieces && s->computed; k++, s->n_pieces++)
        if (!add_piece(b, stage, &from->pieces[k]))
            return false;
    return true;
}

/* Elements of a field that an element of the stage reads. */
static int most_loads(const body *b, int stage, int field)
{
    int most = 0;
    const oly_field_stage *s = &b->stages[stage];
    for (int p = 0; p < s->n_pieces; p++) {
        int n = 0;
        for (int k = 0; k < s->pieces[p].program.n_loads; k++) {
            int read = s->pieces[p].loads[k].read;
            n += read >= 0 && b->reads[stage][read].kind == OLY_TILING_FIELD && b->reads[stage][read].index == field;
        }
        most = n > most ? n : most;
    }
    return most;
}

/* Fields that are read often are copied first: from shared memory on all addresses are constants. */
static void add_copies(body *b)
{
    enum { OFTEN = 3 };
    const oly_tiling_form *form = b->form;
    for (int j = 0; j < form->n_fields; j++) {
        int loads = 0, stage = form->n_stages + b->n_copies;
        b->dtypes[j] = (uint8_t)form->field[j]->type.dtype;
        for (int s = 0; s < form->n_stages; s++)
            loads += most_loads(b, s, j);
        if (loads < OFTEN || stage == OLY_FIELD_STAGES || b->n_pieces == OLY_FIELD_PIECES ||
            b->n_loads == OLY_BLOCKED_LOADS)
            continue;
        oly_field_load *load = &b->loads[b->n_loads++];
        oly_field_piece *piece = &b->pieces[b->n_pieces++];
        memset(load, 0, sizeof *load);
        b->stages[stage] = (oly_field_stage){
            .n_reads = 1, .n_pieces = 1, .computed = true, .copied = true, .first = b->shift, .pieces = piece};
        b->reads[stage][0] = (oly_tiling_ref){OLY_TILING_FIELD, j};
        piece->loads = load;
        piece->program = (oly_tile_program){.n_loads = 1,
                                            .n_stores = 1,
                                            .load_register = &b->zero,
                                            .load_dtype = &b->dtypes[j],
                                            .store_register = &b->zero,
                                            .store_dtype = &b->dtypes[j],
                                            .n_registers = 1};
        b->copy[b->n_copies++] = j;
    }
    b->of.n_stages = form->n_stages + b->n_copies;
}

/* Blocks share a processor, so that some compute while others wait. */
static void look_at_device(body *b, const oly_cuda_launcher *l)
{
    int each;
    b->sharing = 2;
    each = (l->shared - LEFT_BYTES) / b->sharing - OWN_BYTES;
    each = each < l->shared_each ? each : l->shared_each;
    b->processors = l->processors > 0 ? l->processors : 1;
    b->shared = each > SHARED_BYTES ? each : SHARED_BYTES;
}

bool oly_blocked_make_body(body *b, const oly_cuda_launcher *l, const oly_tiling_form *form, const int64_t *extents)
{
    b->form = form;
    b->shift = 3 - form->rank;
    b->of = (oly_field_body){form->n_stages, b->stages};
    if (form->rank < 1 || form->rank > 3 || form->n_stages > OLY_FIELD_STAGES ||
        2 * form->n_fields + form->n_fixed > OLY_FIELD_GLOBALS)
        return false;
    for (int d = 0; d < form->rank; d++)
        if (form->shape[d] > OLY_BLOCKED_LARGEST / 2)
            return false;
    for (int k = 0; k < form->n_stages; k++)
        if (!fits_stage(b, k))
            return false;
    look_at_device(b, l);
    for (int d = 0; d < 3; d++)
        b->extent[d] = d < b->shift ? 1 : extents[d - b->shift];
    if (oly_enabled(OLY_OPTIMISATION_FIELD_STRIPS))
        add_copies(b);
    return true;
}

/* -- some steps ------------------------------------------------------------------------------------------------------------------------- */

void oly_blocked_widen(extent *e, const extent *at, const int32_t *shift)
{
    for (int d = 0; d < 3; d++) {
        int lo = at->lo[d] + (shift ? shift[d] : 0), hi = at->hi[d] + (shift ? shift[d] : 0);
        e->lo[d] = !e->any || lo < e->lo[d] ? lo : e->lo[d];
        e->hi[d] = !e->any || hi > e->hi[d] ? hi : e->hi[d];
    }
    e->any = true;
}

static void list_instances(const body *b, int steps, unrolled *u)
{
    const oly_tiling_form *form = b->form;
    int now[OLY_FIELD_GLOBALS], next[OLY_FIELD_GLOBALS];
    for (int j = 0; j < form->n_fields; j++)
        now[j] = j;
    for (int c = 0; c < b->n_copies; c++) {
        u->instance[u->n_instances] =
            (oly_field_instance){.stage = form->n_stages + c, .buffer = -1, .target = -1, .read = {b->copy[c]}};
        now[b->copy[c]] = ~u->n_instances++;
    }
    for (int s = 0; s < steps; s++) {
        int first = u->n_instances;
        for (int k = 0; k < form->n_stages; k++) {
            oly_field_instance *i = &u->instance[u->n_instances++];
            *i = (oly_field_instance){.stage = k, .step = s, .buffer = -1, .target = -1};
            for (int r = 0; r < b->stages[k].n_reads; r++) {
                oly_tiling_ref of = b->reads[k][r];
                i->read[r] = of.kind == OLY_TILING_FIELD   ? now[of.index]
                             : of.kind == OLY_TILING_STAGE ? ~(first + of.index)
                                                           : form->n_fields + of.index;
            }
        }
        for (int j = 0; j < form->n_fields; j++)
            next[j] = form->out[j].kind == OLY_TILING_FIELD ? now[form->out[j].index] : ~(first + form->out[j].index);
        memcpy(now, next, sizeof now);
    }
    for (int j = 0; j < form->n_fields; j++)
        u->end[j] = now[j] < 0 && ~now[j] < b->n_copies ? b->copy[~now[j]] : now[j];
}

/* Backwards from the fields after the steps, which are written where `wanted` says. False: two of them are one value. */
static bool find_needs(const body *b, const bool *wanted, unrolled *u)
{
    static const extent here = {.any = true};
    int n_fields = b->form->n_fields;
    for (int j = 0; j < n_fields; j++) {
        if (u->end[j] >= 0 || !wanted[j])
            continue;
        oly_field_instance *i = &u->instance[~u->end[j]];
        if (i->target >= 0)
            return false;
        i->target = n_fields + b->form->n_fixed + j;
        oly_blocked_widen(&u->need[~u->end[j]], &here, NULL);
    }
    for (int k = u->n_instances - 1; k >= 0; k--) {
        const oly_field_instance *i = &u->instance[k];
        const oly_field_stage *s = &b->stages[i->stage];
        for (int p = 0; p < s->n_pieces && u->need[k].any; p++)
            for (int l = 0; l < s->pieces[p].program.n_loads; l++) {
                const oly_field_load *load = &s->pieces[p].loads[l];
                int of = load->read < 0 ? n_fields : i->read[load->read];
                if (of < n_fields)
                    oly_blocked_widen(of < 0 ? &u->need[~of] : &u->field[of], &u->need[k], load->shift);
            }
    }
    return true;
}

static void give_buffers(const body *b, unrolled *u)
{
    int last[OLY_FIELD_INSTANCES], holder[OLY_FIELD_INSTANCES];
    extent all = {.any = false};
    for (int k = 0; k < u->n_instances; k++)
        last[k] = -1;
    for (int k = 0; k < u->n_instances; k++)
        for (int r = 0; r < b->stages[u->instance[k].stage].n_reads && u->need[k].any; r++)
            if (u->instance[k].read[r] < 0)
                last[~u->instance[k].read[r]] = k;
    for (int k = 0; k < u->n_instances; k++) {
        if (!u->need[k].any || last[k] < 0)
            continue;
        int free = 0;
        while (free < u->n_buffers && last[holder[free]] >= k)
            free++;
        u->n_buffers += free == u->n_buffers;
        holder[free] = k;
        u->instance[k].buffer = free;
        oly_blocked_widen(&all, &u->need[k], NULL);
    }
    memcpy(u->from, all.lo, sizeof u->from);
    memcpy(u->to, all.hi, sizeof u->to);
}

void oly_blocked_drop_unneeded(const body *b, unrolled *u)
{
    int number[OLY_FIELD_INSTANCES], n = 0;
    for (int k = 0; k < u->n_instances; k++) {
        number[k] = n;
        if (!u->need[k].any)
            continue;
        oly_field_instance i = u->instance[k];
        for (int r = 0; r < b->stages[i.stage].n_reads; r++)
            i.read[r] = i.read[r] < 0 ? ~number[~i.read[r]] : i.read[r];
        for (int d = 0; d < 3; d++) {
            i.lo[d] = u->need[k].lo[d];
            i.hi[d] = u->need[k].hi[d];
        }
        u->instance[n++] = i;
    }
    u->n_instances = n;
}

bool oly_blocked_unroll(const body *b, int steps, const bool *wanted, unrolled *u)
{
    memset(u, 0, sizeof *u);
    if (steps * b->form->n_stages + b->n_copies > OLY_FIELD_INSTANCES)
        return false;
    list_instances(b, steps, u);
    if (!find_needs(b, wanted, u))
        return false;
    give_buffers(b, u);
    return true;
}

/* -- tiles ------------------------------------------------------------------------------------------------------------------------------- */

int oly_blocked_element_bytes(const body *b)
{
    size_t most = 1, bytes;
    for (int k = 0; k < b->form->n_stages; k++)
        most = (bytes = oly_dtype_size(b->form->stages[k].node->type.dtype)) > most ? bytes : most;
    for (int c = 0; c < b->n_copies; c++)
        most = (bytes = oly_dtype_size(b->form->field[b->copy[c]]->type.dtype)) > most ? bytes : most;
    return (int)most;
}

/* Elements of a buffer that the shared memory of a block has room for. */
static int most_points(const body *b, const unrolled *u)
{
    return u->n_buffers ? (b->shared / u->n_buffers - 16) / oly_blocked_element_bytes(b) : b->shared / 8;
}

/* Window `number` of at most so many points; false: there are no more. Rows are whole warps (field_strips.h). */
static bool window_of(int rank, int points, int number, int window[3])
{
    enum { PARTS = 4, WIDTHS = 4 };
    static const int width[WIDTHS] = {32, 64, 128, 256};
    int part = number % PARTS, rows = rank == 3 ? 16 : 1; /* all of the points, three quarters, a half, an eighth */
    points = part == 0 ? points : part == 1 ? points / 4 * 3 : part == 2 ? points / 2 : points / 8;
    if (number >= (rank == 2 ? PARTS * WIDTHS : PARTS))
        return false;
    window[2] = rank == 1 ? points : rank == 2 ? width[number / PARTS] : 32;
    window[1] = rank == 2 ? points / window[2] : rows;
    window[0] = rank == 3 ? points / (rows * window[2]) : 1;
    return true;
}

bool oly_blocked_tile(const body *b, const unrolled *u, const int window[3], int tile[3])
{
    if (window[0] * window[1] * window[2] > most_points(b, u))
        return false;
    for (int d = 0; d < 3; d++) {
        tile[d] = window[d] - (u->to[d] - u->from[d]);
        if (tile[d] < 1)
            return false;
    }
    return true;
}

static int up(int n, int by)
{
    return (n + by - 1) / by;
}

/* Instructions for an element of the stage: its longest piece's, with loads and what is around them. */
static double instructions_of(const oly_field_stage *s)
{
    double most = 0;
    for (int k = 0; k < s->n_pieces; k++) {
        const oly_tile_program *p = &s->pieces[k].program;
        double n = 3 + p->n_loads;
        for (int i = 0; i < p->n_instructions; i++)
            n += p->instructions[i].op != OLY_TILE_splat;
        most = n > most ? n : most;
    }
    return most;
}

/* What a step takes, in cycles of a processor. From the instructions of compiled kernels and the rates of an
 * H200: INSTRUCTIONS of warps a cycle for each block, six tenths of what can be; BYTES of memory. */
static double cost_of(const body *b, const unrolled *u, int steps, const int tile[3])
{
    const double INSTRUCTIONS = 2.4 / b->sharing, BYTES = 19. / b->sharing, START = 1500, LAUNCH = 3000, STAGE = 250,
                 PIECE = 80;
    double computing = 0, elements = 0, blocks = 1;
    int now[3];
    for (int d = 0; d < 3; d++) {
        now[d] = tile[d] < b->extent[d] ? tile[d] : (int)b->extent[d];
        const int64_t count = (b->extent[d] + now[d] - 1) / now[d];
        blocks *= (double)count;
    }
    for (int k = 0; k < u->n_instances; k++) {
        const extent *e = &u->need[k];
        const oly_field_stage *s = &b->stages[u->instance[k].stage];
        int rows = up(now[1] + e->hi[1] - e->lo[1], 8) * 8, columns = up(now[2] + e->hi[2] - e->lo[2], 32);
        double warps = (double)(now[0] + e->hi[0] - e->lo[0]) * (b->form->rank == 1 ? 1 : rows) * columns;
        if (e->any)
            computing += warps * instructions_of(s) / INSTRUCTIONS + STAGE + PIECE * s->n_pieces;
    }
    for (int j = 0; j < b->form->n_fields; j++) {
        double read = u->field[j].any, written = 1;
        for (int d = 0; d < 3; d++) {
            read *= now[d] + u->field[j].hi[d] - u->field[j].lo[d];
            written *= now[d];
        }
        elements += read + written;
    }
    double moving = elements * oly_blocked_element_bytes(b) / BYTES, waves = blocks / (b->sharing * b->processors);
    double block = START + (moving > computing ? moving + 0.3 * computing : computing + 0.3 * moving);
    waves = waves < 1 ? 1 : waves < 4 ? (double)(int64_t)(waves + 0.999) : waves + 0.5;
    return (waves * block + LAUNCH) / steps;
}

/* The least cost of a launch of so many steps, and its window; 0: it cannot be computed so. */
static double best_window(const body *b, int steps, unrolled *u, int window[3])
{
    bool all[OLY_FIELD_GLOBALS];
    int tile[3], tried[3];
    double least = 0;
    for (int j = 0; j < OLY_FIELD_GLOBALS; j++)
        all[j] = true;
    if (!oly_blocked_unroll(b, steps, all, u))
        return 0;
    for (int k = 0; window_of(b->form->rank, most_points(b, u), k, tried); k++) {
        double cost = oly_blocked_tile(b, u, tried, tile) ? cost_of(b, u, steps, tile) : 0;
        if (cost > 0 && (least == 0 || cost < least)) {
            least = cost;
            memcpy(window, tried, sizeof tried);
        }
    }
    return least;
}

int oly_blocked_best_steps(const body *b, int steps, unrolled *u, int window[3])
{
    enum { WORSE = 4 }; /* numbers of launches after which more are not tried */
    double cost[MOST_STEPS + 1] = {0}, least = 0;
    int best = 0, tried[MOST_STEPS + 1][3];
    for (int groups = up(steps, MOST_STEPS), worse = 0; groups <= steps && worse < WORSE; groups++) {
        int n = up(steps, groups), fewer = n * groups - steps;
        double all = 0;
        for (int k = n; k > 0 && k >= n - (fewer > 0); k--) {
            cost[k] = cost[k] > 0 ? cost[k] : best_window(b, k, u, tried[k]);
            all += cost[k] * k * (k == n ? groups - fewer : fewer);
        }
        if (cost[n] > 0 && (!best || all < least)) {
            best = n;
            least = all;
            memcpy(window, tried[n], sizeof tried[n]);
            worse = 0;
        } else
            worse += best > 0;
    }
    return best;
}
