/* SPDX-License-Identifier: BSD-3-Clause */
/* run: layouts timeout=120  Every operation of the table after every other: f(g(x)) as one compiled function, sharded over
 * Auto, Explicit and mixed axes, evenly or not, with extents of 1 and of 0, against g and then f called one by one on one
 * device.
 *
 * The rows are those of ops_reference_*.c. The result of g becomes an operand of f that can take it: converted if f does not
 * take its type, with dimensions of size 1 added or removed if f takes another rank. A sample is run. PAIRS=seed=7:0/1 runs
 * every pair that fits once, in a form (size, types, mesh, sharding) chosen by the seed, in about a minute; seed=7:2/10 a tenth
 * of that. PAIRS=all runs every pair in every form (hours), PAIRS=3/100 a hundredth of that, PAIRS=cumsum the pairs of one
 * function. The first words of a failure's message run it again. */
#include "check.h"
#include "core/error.h"
#include "ops_reference.h"
#include <inttypes.h>

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static const row_list *const topics[] = {&ops_elementwise, &ops_reductions, &ops_products, &ops_windows,
                                         &ops_shapes,      &ops_indexes,    &ops_programs};
/* Of g's operands; those of f follow from its result. */
static const int64_t sizes[][3] = {{8, 8, 8}, {4, 6, 3}, {5, 5, 5}, {7, 3, 2},
                                   {1, 5, 4}, {3, 1, 6}, {0, 3, 2}, {2, 9, 9}};
static const char *const meshes[] = {"x=2, y=4", "x=2:explicit, y=4:explicit", "x=2:explicit, y=4", "x=8"};
static const char *const specs[][9] = {
    {"", "", "", "", "", "", "", "", ""},
    {"x", "", "(x,y)", "y", "(y,x)", "x", "y", "", "(x,y)"},
    {"x", "None,x", "x,y", "(x,y)", "y,x", "None,(y,x)", "None,y", "", "(y,x)"},
    {"x", "None,x", "None,None,x", "x,y", "(x,y)", "y,None,x", "None,x,y", "None,None,(x,y)", ""},
    {"x", "None,x", "x,y", "(x,y)", "None,None,x,y", "None,None,x", "None,None,None,x", "y,x", ""},
};
enum { SHARDINGS = 9, MOST_BYTES = 16 * 8 * MOST_ELEMENTS };

/* A pair: g's operands and then f's without the one that g computes. */
typedef struct pair {
    const row *g, *f;
    int n_g, n_f, place;     /* of g's result among the operands of f */
    oly_dtype dtype, middle; /* of g's operands; of its result as f takes it */
    int middle_rank;         /* of that */
    int64_t middle_shape[OLY_MAX_RANK];
    int size, mesh, sharding;
    tensor in[2 * MOST_OPERANDS];
} pair;

static int trials, failures, refusals, unfit;
static struct {
    unsigned pair, turn;
    int layout;
} now; /* what is running, as PAIRS names it */

/* -- the program ---------------------------------------------------------------------------------------------------------- */
static oly_array fitted(const pair *p, oly_array x)
{
    x = x && oly_dtype_of(x) != p->middle ? oly_astype(x, p->middle) : x;
    return x && oly_rank(x) != p->middle_rank ? oly_reshape_shape(x, p->middle_rank, p->middle_shape) : x;
}

static oly_array second(const pair *p, oly_array made, const oly_array *others)
{
    oly_array in[MOST_OPERANDS];
    for (int k = 0, next = 0; k < p->n_f; k++)
        in[k] = k == p->place ? made : others[next++];
    return made ? p->f->call(in) : NULL;
}

static void both(const oly_array *in, oly_array *out, void *user)
{
    const pair *p = user;
    out[0] = second(p, fitted(p, p->g->call(in)), in + p->n_g);
}

/* -- which pairs fit ------------------------------------------------------------------------------------------------------ */
static int64_t extents(const char *text, const int64_t *size)
{
    int64_t n = 1;
    for (text += text[0] && text[1] == ':' ? 2 : 0; *text && *text != ',' && *text != '-'; text++)
        n *= ops_extent(*text, size);
    return n;
}

static bool is_large(const row *r, const int64_t *size)
{
    for (const char *text = r->shapes; text; text = strpbrk(text, ",>") ? strpbrk(text, ",>") + 1 : NULL)
        if (extents(text, size) > MOST_ELEMENTS)
            return true;
    return false;
}

static bool allows(const row *r, const int64_t *size)
{
    for (int k = 0; k < 3; k++)
        if ((r->flags & AT_LEAST_ONE && size[k] == 0) || (r->flags & DIVIDES && (size[k] % 8 || size[k] == 0)))
            return false;
    return !is_large(r, size);
}

/* The first type that f takes which is the given one, or which that is converted to. */
static oly_dtype type_for(const row *r, oly_dtype made)
{
    static const char order[] = "fiBbuhcF1234IUC";
    if (strchr(r->types, ops_type_letters[made]))
        return made;
    for (const char *c = order; *c; c++)
        if (strchr(r->types, *c) && (oly_x64_enabled() || !strchr("FCIU", *c)))
            return ops_type_of(*c);
    return made;
}

/* Extents m, n, k with which the pattern ("mHk") has these dimensions. */
static bool solve(const char *pattern, int rank, const int64_t *shape, int64_t *size)
{
    static const int64_t otherwise[] = {5, 4, 3};
    int64_t found[] = {-1, -1, -1};
    for (int d = 0; d < rank; d++) {
        const char *plain = strchr("mnk", pattern[d]);
        if (plain && *plain && found[plain - "mnk"] < 0)
            found["mnk"[plain - "mnk"] == 'm' ? 0 : "mnk"[plain - "mnk"] == 'n' ? 1 : 2] = shape[d];
    }
    for (int d = 0; d < rank; d++) { /* a dimension that is a function of another */
        static const char derived[] = "ASDELMHBTPC";
        int64_t most = shape[d] * 2 + 4;
        for (int of = 0; of < 2 && strchr(derived, pattern[d]); of++)
            for (int64_t x = 0; x <= most && found[of] < 0; x++) {
                int64_t tried[] = {found[0] < 0 ? otherwise[0] : found[0], found[1] < 0 ? otherwise[1] : found[1], 3};
                tried[of] = x;
                if (ops_extent(pattern[d], tried) == shape[d])
                    found[of] = x;
            }
    }
    for (int k = 0; k < 3; k++)
        size[k] = found[k] < 0 ? otherwise[k] : found[k];
    for (int d = 0; d < rank; d++)
        if (ops_extent(pattern[d], size) != shape[d])
            return false;
    return true;
}

/* Adds dimensions of size 1 in front, or merges leading dimensions. */
static void take_rank(pair *p, oly_array made, int rank)
{
    const int64_t *shape = oly_shape(made);
    int is = oly_rank(made);
    p->middle_rank = rank;
    for (int d = 0; d < rank; d++)
        p->middle_shape[d] = 1;
    if (is <= rank) {
        memcpy(p->middle_shape + rank - is, shape, sizeof *shape * (size_t)is);
        return;
    }
    for (int d = 0; d < is; d++)
        p->middle_shape[d < is - rank ? 0 : d - (is - rank)] *= shape[d];
}

static int pattern_rank(const char *pattern)
{
    return (int)strspn(pattern, "mnkMLHDEPSABTC123456789");
}

/* The operands of f; false: none of them can be g's result. */
static bool find_place(pair *p, oly_array made, int from)
{
    const char *text = p->f->shapes;
    bool fixed = false;
    int64_t size[3];
    p->place = -1;
    for (int k = 0; text && k < MOST_OPERANDS; k++) {
        fixed = text[0] && text[1] == ':';
        const char *pattern = text + (fixed ? 2 : 0);
        int rank = pattern_rank(pattern);
        if (p->place < 0 && k >= from && (oly_rank(made) <= rank || rank > 0)) {
            take_rank(p, made, rank);
            if (solve(pattern, rank, p->middle_shape, size) && allows(p->f, size)) {
                p->place = k;
                p->middle = fixed ? ops_type_of(text[0]) : type_for(p->f, oly_dtype_of(made));
                break;
            }
        }
        text = strpbrk(text, ",-");
        text = text && *text == ',' ? text + 1 : NULL;
    }
    if (p->place < 0)
        return false;
    oly_dtype dtype = fixed ? type_for(p->f, oly_dtype_of(made)) : p->middle;
    text = p->f->shapes;
    p->n_f = 0;
    for (bool more = true; more; p->n_f++) {
        static tensor unused;
        tensor *in = p->n_f == p->place ? &unused : &p->in[p->n_g + p->n_f - (p->place < p->n_f)];
        in->dtype = dtype;
        text = ops_read_shape(text, size, in);
        ops_fill(p->f, in, p->n_f * 2 + 1);
        more = *text == ',';
        text += more;
    }
    return true;
}

static void first_operands(pair *p)
{
    const char *text = p->g->shapes;
    p->n_g = 0;
    for (bool more = true; more; p->n_g++) {
        tensor *in = &p->in[p->n_g];
        in->dtype = p->dtype;
        text = ops_read_shape(text, sizes[p->size], in);
        ops_fill(p->g, in, p->n_g * 2 + 1);
        more = *text == ',';
        text += more;
    }
}

static oly_array array_of(const tensor *t)
{
    static char data[MOST_ELEMENTS * 16];
    ops_store(t, data);
    return oly_from_host(data, t->dtype, t->rank, t->shape);
}

static oly_array placed(const pair *p, int k, oly_array x)
{
    int rank = p->in[k].rank < COUNT(specs) ? p->in[k].rank : 0;
    int choice = (p->sharding + k * (1 + p->size)) % SHARDINGS;
    const char *spec = specs[rank][choice];
    char only[8] = "";
    if (strchr(meshes[p->mesh], 'y') == NULL && strchr(spec, 'y')) /* a mesh of one axis */
        spec = rank > 0 && choice % 2 ? "x" : only;
    return k > 0 && choice % 5 == 4 ? x : oly_device_put(x, oly_named(oly_make_mesh(meshes[p->mesh]), spec));
}

/* -- comparison ----------------------------------------------------------------------------------------------------------- */
static void fetch(oly_array x, char *data)
{
    memset(data, 0xa5, (size_t)oly_size(x) * oly_dtype_size(oly_dtype_of(x)));
    oly_process_allgather(x, data, (size_t)oly_size(x) * oly_dtype_size(oly_dtype_of(x)));
}

static double largest(oly_dtype dtype, const char *data, int64_t n)
{
    double scale = 0;
    for (int64_t i = 0; i < n * element_parts(dtype); i++) {
        double v = fabs(element_part(dtype, data, i / element_parts(dtype), (int)(i % element_parts(dtype))));
        scale = isfinite(v) && v > scale ? v : scale;
    }
    return scale;
}

static double magnitude(oly_array x)
{
    static char data[MOST_BYTES];
    if (!element_is_inexact(oly_dtype_of(x)) || oly_size(x) == 0)
        return 0;
    fetch(x, data);
    return largest(oly_dtype_of(x), data, oly_size(x));
}

/* Equal except for rounding, relative to the larger number, or to `scale`. */
static bool is_near(oly_dtype dtype, const char *a, const char *b, int64_t i, double scale)
{
    for (int part = 0; part < element_parts(dtype); part++) {
        double v = element_part(dtype, a, i, part), w = element_part(dtype, b, i, part);
        if (v != w && !(isnan(v) && isnan(w)) && !(fabs(v - w) <= 64 * element_epsilon(dtype) * scale))
            return false;
    }
    return true;
}

/* The first element that is near that of none of the n arrays; -1: none, -2: they differ in type. */
static int64_t differs(oly_array x, int n, const oly_array *of, double scale)
{
    static char a[MOST_BYTES], b[4][MOST_BYTES];
    oly_dtype dtype = oly_dtype_of(x);
    fetch(x, a);
    for (int k = 0; k < n; k++) {
        if (dtype != oly_dtype_of(of[k]) || oly_rank(x) != oly_rank(of[k]) ||
            memcmp(oly_shape(x), oly_shape(of[k]), sizeof(int64_t) * (size_t)oly_rank(x)) != 0)
            return -2;
        fetch(of[k], b[k]);
        double most = element_is_inexact(dtype) ? largest(dtype, b[k], oly_size(x)) : 0;
        scale = most > scale ? most : scale;
    }
    size_t bytes = oly_dtype_size(dtype);
    for (int64_t i = 0; i < oly_size(x); i++) {
        bool near = false;
        for (int k = 0; k < n && !near; k++)
            near = element_is_inexact(dtype) ? is_near(dtype, a, b[k], i, scale)
                                             : memcmp(a + (size_t)i * bytes, b[k] + (size_t)i * bytes, bytes) == 0;
        if (!near)
            return i;
    }
    return -1;
}

static void complain(const pair *p, const char *what)
{
    static const row *last;
    static int of_row;
    of_row = last == p->g ? of_row + 1 : 0;
    last = p->g;
    failures++;
    if (of_row < 4 && failures < 200 && oly_process_index() == 0)
        print_error("PAIRS=%u,%d,%u,%d: %s \"%s\" of %s %s \"%s\" as %s, mesh \"%s\": %s\n", now.pair, p->size,
                    now.turn, now.layout, p->f->name, p->f->shapes, oly_dtype_name(p->dtype), p->g->name, p->g->shapes,
                    oly_dtype_name(p->middle), meshes[p->mesh], what);
    oly_clear_error();
}

/* Products of many numbers underflow or overflow, or both on the way. */
static bool multiplies(const row *r)
{
    return strstr(r->name, "prod") != NULL;
}

/* Where numbers are close to the largest of a type, the order of a sum decides whether it overflows. */
static bool may_overflow(oly_dtype dtype, double scale)
{
    double most = dtype == OLY_FLOAT16 ? 65504 : dtype == OLY_FLOAT64 || dtype == OLY_COMPLEX128 ? 0x1p1023 : 0x1p127;
    return scale > most / 4096;
}

/* The sign of NaN is unspecified. */
static bool reads_signs(const row *r)
{
    return strstr(r->name, "sign") || strstr(r->name, "bitcast") || strstr(r->name, "nextafter");
}

static bool has_nan(oly_array x)
{
    static char data[MOST_BYTES];
    oly_dtype dtype = oly_dtype_of(x);
    if (!element_is_inexact(dtype))
        return false;
    fetch(x, data);
    for (int64_t i = 0; i < oly_size(x) * element_parts(dtype); i++)
        if (isnan(element_part(dtype, data, i / element_parts(dtype), (int)(i % element_parts(dtype)))))
            return true;
    return false;
}

/* Is the difference only the rounding of a sum in another order, and what f makes of it? Then the result is near what f
 * makes of g's results call by call, or of numbers next to them. */
static bool is_rounding(const pair *p, const oly_array *there, const oly_array *here, oly_array first, oly_array got,
                        oly_array want)
{
    static char data[MOST_BYTES];
    oly_array other = fitted(p, p->g->call(there)), results[4] = {want};
    oly_dtype dtype = oly_dtype_of(first);
    double scale = magnitude(first), factors = 1;
    for (int k = p->n_g; k < p->n_g + p->n_f - 1; k++) /* of products, whose terms may cancel */
        factors = fmax(factors, magnitude(here[k]));
    if ((multiplies(p->f) && !(magnitude(want) > 1e-30 && magnitude(want) < 1e30)) ||
        (multiplies(p->g) && !(scale > 1e-30 && scale < 1e5)))
        return true;
    if (may_overflow(dtype, scale * factors) || (reads_signs(p->f) && has_nan(first)))
        return true;
    if (!element_is_inexact(dtype) || !other || differs(other, 1, &first, 0) != -1)
        return false;
    for (int k = 0; k < 3; k++) {
        fetch(k ? first : other, data);
        for (int64_t i = 0; i < oly_size(first) * element_parts(dtype) && k > 0; i++) {
            double x = element_part(dtype, data, i / element_parts(dtype), (int)(i % element_parts(dtype)));
            set_element_part(dtype, data, i / element_parts(dtype), (int)(i % element_parts(dtype)),
                             x * (1 + (k - 1.5) * 8 * element_epsilon(dtype)));
        }
        results[k + 1] = second(p, oly_from_host(data, dtype, oly_rank(first), oly_shape(first)), here + p->n_g);
        if (!results[k + 1])
            return false;
    }
    return differs(got, 4, results, scale * factors) == -1;
}

/* Where types are explicit a pair may be refused; call by call it must be, too. */
static void check_refused(pair *p, oly_array got, const oly_array *there)
{
    char message[1200], type[2][200] = {"", ""};
    oly_status status = got ? OLY_OK : oly_last_status();
    snprintf(message, sizeof message, "%.1000s", got ? "" : oly_last_error());
    oly_clear_error();
    oly_array one_by_one = NULL;
    both(there, &one_by_one, p);
    oly_status eager = one_by_one ? OLY_OK : oly_last_status();
    if (got && !one_by_one)
        snprintf(message, sizeof message, "is refused call by call only: %.1000s", oly_last_error());
    oly_clear_error();
    if (strstr(message, "[mesh_conflict]"))
        return; /* operations with a mesh of their own */
    if (status != eager)
        complain(p, message);
    else if (status != OLY_OK && status != OLY_SHARDING)
        complain(p, message);
    else if (status == OLY_OK) {
        oly_typeof(got, type[0], sizeof type[0]);
        oly_typeof(one_by_one, type[1], sizeof type[1]);
        if (strcmp(type[0], type[1]) != 0 &&
            !strstr(p->f->name, "_like")) { /* weak values lose their weakness, as in JAX */
            snprintf(message, sizeof message, "is %s compiled and %s call by call", type[0], type[1]);
            complain(p, message);
        }
    }
}

static bool has_own_mesh(const row *r)
{
    static const char *const names[] = {"with_sharding_constraint", "device_put", "shard_map", "reshape_sharded"};
    for (int k = 0; k < COUNT(names); k++)
        if (strcmp(r->name, names[k]) == 0)
            return true;
    return strstr(r->name, "_sharded") != NULL;
}

static void compare(pair *p, const oly_array *here, oly_array first, oly_array want)
{
    oly_array there[2 * MOST_OPERANDS], got;
    char text[200];
    int n = p->n_g + p->n_f - 1;
    for (int k = 0; k < n; k++)
        there[k] = placed(p, k, here[k]);
    got = oly_apply_n(oly_jit(both, n, 1, .user = p, .name = "pair"), n, there);
    trials++;
    if (strstr(meshes[p->mesh], "explicit")) {
        if (has_own_mesh(p->f) || has_own_mesh(p->g))
            return;
        refusals += !got;
        check_refused(p, got, there);
        if (!got)
            return;
    }
    if (!got) {
        complain(p, oly_last_error());
        return;
    }
    int64_t at = differs(got, 1, &want, 0);
    if (at == -1 || (at >= 0 && is_rounding(p, there, here, first, got, want)))
        return;
    snprintf(text, sizeof text, at < 0 ? "another type or shape" : "element %" PRId64 " differs", at);
    complain(p, text);
}

/* -- selection ----------------------------------------------------------------------------------------------------- */
static const row *rows[1000];
static int n_rows;

static void find_rows(void)
{
    n_rows = 0;
    for (int topic = 0; topic < COUNT(topics); topic++)
        for (int i = 0; i < topics[topic]->count; i++)
            rows[n_rows++] = &topics[topic]->rows[i];
}

/* A type that g takes: each sometimes, the most used ones more often. */
static oly_dtype type_of(const row *r, unsigned turn)
{
    if (turn % 2 && strchr(r->types, 'f'))
        return OLY_FLOAT32;
    for (unsigned k = 0; k < 32; k++) {
        oly_dtype dtype = (oly_dtype)((turn / 2 * 7 + k) % OLY_N_DTYPES);
        if (ops_type_letters[dtype] && strchr(r->types, ops_type_letters[dtype]) &&
            (oly_x64_enabled() || oly_dtype_size(dtype) < 8))
            return dtype;
    }
    return type_for(r, OLY_FLOAT32);
}

/* One pair, of operands of one size, over `n` of the layouts from `layout` on; false: they do not fit. */
static bool run(const row *g, const row *f, int size, unsigned turn, int layout, int n)
{
    static pair p;
    oly_array here[2 * MOST_OPERANDS], first, want;
    bool fits = false;
    p.g = g, p.f = f, p.size = size;
    now.turn = turn;
    if (!allows(g, sizes[size]))
        return false;
    OLY_SCOPE
    {
        p.dtype = type_of(g, turn);
        first_operands(&p);
        for (int k = 0; k < p.n_g; k++)
            here[k] = array_of(&p.in[k]);
        first = g->call(here);
        fits = first && oly_size(first) <= MOST_ELEMENTS && find_place(&p, first, (int)(turn % 3 == 2));
        if (!fits && first && oly_size(first) <= MOST_ELEMENTS)
            fits = find_place(&p, first, 0);
        oly_clear_error();
        if (fits) {
            for (int k = p.n_g; k < p.n_g + p.n_f - 1; k++)
                here[k] = array_of(&p.in[k]);
            first = fitted(&p, first);
            want = second(&p, first, here + p.n_g);
            fits = want != NULL && oly_size(want) * (int64_t)oly_dtype_size(oly_dtype_of(want)) <= MOST_BYTES;
            oly_clear_error();
            for (int k = 0; k < n && fits; k++) {
                p.mesh = (layout + k) / SHARDINGS % COUNT(meshes);
                p.sharding = (layout + k) % SHARDINGS;
                now.layout = layout + k;
                compare(&p, here, first, want);
            }
        }
    }
    return fits;
}

static unsigned mixed(unsigned x)
{
    x = (x ^ x >> 16) * 0x45d9f3bu;
    x = (x ^ x >> 16) * 0x45d9f3bu;
    return x ^ x >> 16;
}

/* Pair number `k` in one of its forms; of the sizes that fit, starting from one chosen by its number. */
static void sample(unsigned k, unsigned salt)
{
    unsigned turn = mixed(k * 2654435761u + salt);
    const row *g = rows[k / (unsigned)n_rows], *f = rows[k % (unsigned)n_rows];
    now.pair = k;
    for (int tried = 0; tried < COUNT(sizes); tried++)
        if (run(g, f, (int)((turn + (unsigned)tried) % COUNT(sizes)), turn >> 4,
                (int)(turn >> 8) % (SHARDINGS * COUNT(meshes)), 1))
            return;
    unfit++;
}

static void everything(unsigned k)
{
    const row *g = rows[k / (unsigned)n_rows], *f = rows[k % (unsigned)n_rows];
    now.pair = k;
    for (int size = 0; size < COUNT(sizes); size++)
        for (unsigned turn = 0; turn < 3; turn++)
            run(g, f, size, mixed(k + turn), 0, SHARDINGS * COUNT(meshes));
}

static bool is_named(unsigned k, const char *name)
{
    return strcmp(rows[k / (unsigned)n_rows]->name, name) == 0 || strcmp(rows[k % (unsigned)n_rows]->name, name) == 0;
}

static void pairs_are_what_their_operations_are(void **state)
{
    (void)state;
    enum { SAMPLE = 600 };
    const char *setting = getenv("PAIRS");
    unsigned part = 0, parts = 1, salt = 0;
    int size, layout;
    oly_init(NULL, NULL);
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_int_equal(oly_device_count(), 8);
    find_rows();
    unsigned all = (unsigned)n_rows * (unsigned)n_rows;
    if (!setting) {
        unsigned processes =
            (unsigned)oly_process_count(); /* with many each takes longer; each number has its own pairs */
        for (unsigned k = 0; k < SAMPLE / (1 + processes / 4); k++)
            sample(mixed(k * 7919u + processes) % all, processes);
    } else if (sscanf(setting, "%u,%d,%u,%d", &now.pair, &size, &now.turn, &layout) == 4) {
        run(rows[now.pair / (unsigned)n_rows], rows[now.pair % (unsigned)n_rows], size, now.turn, layout, 1);
    } else if (sscanf(setting, "seed=%u:%u/%u", &salt, &part, &parts) ==
               3) { /* each pair once, in a form chosen by the seed */
        for (unsigned k = part; k < all; k += parts)
            sample(k, salt);
    } else if (strcmp(setting, "all") == 0 || sscanf(setting, "%u/%u", &part, &parts) == 2) {
        for (unsigned k = part % parts; k < all; k += parts)
            everything(k);
    } else {
        for (unsigned k = 0; k < all; k++)
            if (is_named(k, setting))
                everything(k);
    }
    if (setting && oly_process_index() == 0)
        print_message("%d rows, %d trials, %d refused over Explicit axes, %d pairs do not fit, %d failures\n", n_rows,
                      trials, refusals, unfit, failures);
    assert_int_equal(oly_finalize(), 0);
    if (failures)
        fail_msg("%d of %d trials failed", failures, trials);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs_are_what_their_operations_are)};
    return CHECK_MAIN(tests);
}
