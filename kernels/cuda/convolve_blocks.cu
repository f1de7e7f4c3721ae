/* SPDX-License-Identifier: BSD-3-Clause */
/* Convolutions of float32 and float64 as matrix products whose right matrix is never written: column p of it are the elements that place p
 * of the result reads. A block computes a tile of features of one group by places (of all batch elements), each thread 64 (32) of them in
 * registers. Of both matrices it holds OLY_CUDA_CONVOLVE_DEPTH rows in shared memory, twice: while one is used, the next is read from
 * memory into registers. Where the elements of a sum are is a table in shared memory, made by the whole block for 256 of them at a time,
 * so that reading an element takes no division (convolve_task.h). Sums go by fused multiply-adds in the order of the kernel's elements
 * (features, then taps; taps, then features, where features lie side by side in memory), long ones of few results in parts, which
 * are added in order.
 *
 * Groups of few features: a thread computes several places of one feature. */
#include "convolve_task.h" /* before device.h, whose OLY_DEVICE is a macro */
#include "element.h"

enum { DEPTH = OLY_CUDA_CONVOLVE_DEPTH, LISTED = OLY_CUDA_CONVOLVE_TABLE, EACH = OLY_CUDA_CONVOLVE_EACH };
#define NO_ELEMENT INT32_MIN

/* Keeps a value in a register: addresses would be computed from the task again for every element that is read. */
#ifdef OLY_EMULATED
#define KEEP_POINTER(x) ((void)(x))
#define KEEP_INTEGER(x) ((void)(x))
#else
#define KEEP_POINTER(x) ((x) = kept_pointer(x))
#define KEEP_INTEGER(x) asm("" : "+r"(x))
template <class A> OLY_DEVICE const A *kept_pointer(const A *x) /* to global memory, which the compiler is told again */
{
    size_t at = __cvta_generic_to_global(x);
    asm("" : "+l"(at));
    return (const A *)__cvta_global_to_generic(at);
}
#endif

/* Elements that are read and written together. */
template <class A> struct alignas(16) vector {
    static constexpr int length = 16 / (int)sizeof(A);
    A of[16 / sizeof(A)];
};

/* -- where elements are ------------------------------------------------------------------------------------------------------------- */
struct element { /* of the sum */
    int32_t x, w; /* offsets; w: NO_ELEMENT: past the end */
    uint32_t lanes;
};
OLY_DEVICE element element_at(const oly_cuda_convolve_task &t, int l)
{
    element e;
    if (l >= t.n) {
        e.x = 0, e.w = NO_ELEMENT, e.lanes = t.beyond;
        return e;
    }
    int of = t.feature_last ? t.features : t.taps, outer = l / of, inner = l - outer * of;
    int feature = t.feature_last ? inner : outer, tap = t.feature_last ? outer : inner;
    e.x = feature * t.x_feature, e.w = feature * t.w_feature, e.lanes = 0;
    OLY_NO_UNROLL
    for (int d = t.rank - 1; d >= 0; d--) {
        int next = tap / t.size[d], i = tap - next * t.size[d];
        tap = next;
        e.x += i * t.x_tap[d], e.w += i * t.w_tap[d], e.lanes += (uint32_t)i * t.lane_tap[d];
    }
    return e;
}
struct alignas(16) table {
    int32_t x[LISTED], w[LISTED];
    uint32_t lanes[LISTED];
};
/* N neighbouring elements of a table, the first a multiple of 4. */
template <int N, class I> OLY_DEVICE void look_up(const I *table, int from, I *to)
{
    OLY_UNROLL
    for (int k = 0; k < N; k += 4) {
        vector<I> v = *(const vector<I> *)(table + from + k);
        OLY_UNROLL
        for (int i = 0; i < 4; i++)
            to[k + i] = v.of[i];
    }
}
/* Of elements [l, l + LISTED). */
OLY_DEVICE void fill(const oly_cuda_convolve_task &t, int l, int32_t *x, int32_t *w, uint32_t *lanes)
{
    for (int i = oly_thread(); i < LISTED; i += oly_threads()) {
        element e = element_at(t, l + i);
        x[i] = e.x, w[i] = e.w, lanes[i] = e.lanes;
    }
}

/* What a place reads. */
template <class A> struct place {
    const A *x;       /* if nothing is dilated, at the offset of the place */
    int32_t at;       /* else 0; that offset, which is to be shifted */
    uint32_t a, b;
};
template <class A> OLY_DEVICE void find_place(const oly_cuda_convolve_task &t, int group, int column, place<A> *p)
{
    column = column < t.columns ? column : t.columns - 1; /* not written: any */
    int batch = column / t.places, rest = column - batch * t.places;
    int32_t offset = t.x_start;
    p->a = t.lane_start;
    OLY_NO_UNROLL
    for (int d = t.rank - 1; d >= 0; d--) {
        int next = rest / t.extent[d], i = rest - next * t.extent[d];
        rest = next;
        offset += i * t.x_place[d];
        p->a += (uint32_t)i * t.lane_place[d];
    }
    p->b = p->a - t.lane_extent;
    p->x = (const A *)t.x + batch * t.x_batch + group * t.x_group + (t.shift ? 0 : offset);
    p->at = t.shift ? offset : 0;
    KEEP_POINTER(p->x);
}
/* The lanes of element l are in a table. */
template <class A> OLY_DEVICE bool is_inside(const oly_cuda_convolve_task &t, const place<A> &p, uint32_t lanes)
{
    return ((p.a + lanes) & ~(p.b + lanes) & t.inside) == t.inside;
}
template <class A> OLY_DEVICE bool is_element(const oly_cuda_convolve_task &t, const place<A> &p, uint32_t lanes)
{
    return is_inside(t, p, lanes) && ((p.a + lanes) & t.divisible) == 0;
}

/* -- tiles ---------------------------------------------------------------------------------------------------------------------------- */
OLY_DEVICE float added(float sum, float x, float y)
{
    return oly_fma(x, y, sum);
}
OLY_DEVICE double added(double sum, double x, double y)
{
    return oly_fma(x, y, sum);
}

/* FEATURES x PLACES results, of which a thread has ROWS x COLUMNS: vectors of neighbouring ones, ACROSS (DOWN) threads apart.
 * TOGETHER: features lie side by side in both operands. Then a thread reads vectors of them, and neighbouring threads those of one place.
 * WHOLE: of the kernel's rows, which are in the order of the sum, threads read vectors; nothing is dilated. */
enum ways { ANY, TOGETHER, WHOLE };
template <class T, int F, int P, int R, int C, ways W = ANY> struct tile {
    using A = T;
    static constexpr int FEATURES = F, PLACES = P, ROWS = R, COLUMNS = C;
    static constexpr int V = vector<A>::length, ACROSS = P / C, DOWN = F / R, THREADS = ACROSS * DOWN;
    static constexpr int W_LINE = F + V, X_LINE = P + V;                       /* in shared memory */
    static constexpr int W_EACH = F * DEPTH / THREADS, X_EACH = P * DEPTH / THREADS; /* elements that a thread reads */
    static constexpr ways WAY = W;
    static constexpr int BESIDE = W == TOGETHER ? DEPTH / V : 1;               /* threads that read elements of one place */
    static constexpr int OWN = P * BESIDE > THREADS ? P * BESIDE / THREADS : 1; /* places whose elements it reads, and */
    static constexpr int DEEP = X_EACH / OWN;                                  /* neighbouring elements of their sums */
    static_assert(W == ANY || W_EACH == V, "a thread reads a vector of the kernel");
    static_assert(W != TOGETHER || DEEP == V, "and of each place");
};

template <class S> struct reading { /* of a thread */
    using A = typename S::A;
    place<A> own[S::OWN];
    const A *w;
    int32_t w_row[S::W_EACH];
    int w_first, w_step, w_store, w_store_step; /* element of the sum, place in shared memory: first, and how far apart */
    int x_first;
};
template <class S>
OLY_DEVICE void begin_reading(const oly_cuda_convolve_task &t, int group, int row, int rows, int column,
                              reading<S> *r)
{
    using A = typename S::A;
    int thread = oly_thread(), line;
    OLY_UNROLL
    for (int k = 0; k < S::OWN; k++)
        find_place(t, group, column + (S::WAY == TOGETHER ? thread / S::BESIDE : thread % S::PLACES) + k * (S::THREADS / S::BESIDE),
                   &r->own[k]);
    r->x_first = (S::WAY == TOGETHER ? thread % S::BESIDE : thread / S::PLACES) * S::DEEP;
    r->w = (const A *)t.w + row * t.w_row;
    if (S::WAY != ANY) {
        line = S::WAY == TOGETHER ? thread % (S::FEATURES / S::V) * S::V : thread / (DEPTH / S::V);
        r->w_first = S::WAY == TOGETHER ? thread / (S::FEATURES / S::V) : thread % (DEPTH / S::V) * S::V;
        r->w_store = r->w_first * S::W_LINE + line;
        r->w += line < rows ? line * t.w_row : 0; /* others are not written: any */
        KEEP_POINTER(r->w);
        return;
    }
    KEEP_POINTER(r->w);
    if (t.w_by_row) {
        line = thread % S::FEATURES;
        r->w_first = thread / S::FEATURES, r->w_step = S::THREADS / S::FEATURES;
        r->w_store_step = r->w_step * S::W_LINE;
    } else {
        line = thread / DEPTH;
        r->w_first = thread % DEPTH, r->w_step = 0;
        r->w_store_step = S::THREADS / DEPTH;
    }
    r->w_store = r->w_first * S::W_LINE + line;
    OLY_UNROLL
    for (int k = 0; k < S::W_EACH; k++) {
        int at = line + (t.w_by_row ? 0 : k * (S::THREADS / DEPTH));
        r->w_row[k] = (int32_t)((at < rows ? at : rows - 1) * t.w_row); /* others are not written: any */
        KEEP_INTEGER(r->w_row[k]);
    }
}
/* Elements from `base` on in the table. Past the end are zeros whose products, -0, change no sum. */
template <class S>
OLY_DEVICE void read_w(const reading<S> &r, const int32_t *table_w, int base, typename S::A *w)
{
    OLY_UNROLL
    for (int k = 0; k < S::W_EACH; k++) {
        int32_t at = table_w[base + r.w_first + k * r.w_step];
        w[k] = -0.0f;
        if (at != NO_ELEMENT)
            w[k] = r.w[r.w_row[k] + at];
    }
}
template <class S>
OLY_DEVICE void read_undilated_x(const oly_cuda_convolve_task &t, const reading<S> &r, const int32_t (&at)[S::DEEP],
                                 const uint32_t (&lanes)[S::DEEP], typename S::A *x)
{
    OLY_UNROLL
    for (int l = 0; l < S::DEEP; l++) {
        OLY_UNROLL
        for (int k = 0; k < S::OWN; k++) {
            typename S::A v = 0;
            if (is_inside(t, r.own[k], lanes[l]))
                v = r.own[k].x[at[l]];
            x[k * S::DEEP + l] = v;
        }
    }
}
template <class S>
OLY_DEVICE void read_x(const oly_cuda_convolve_task &t, const reading<S> &r, const int32_t *table_x,
                       const uint32_t *table_lanes, int base, typename S::A *x)
{
    using A = typename S::A;
    int32_t at[S::DEEP];
    uint32_t lanes[S::DEEP];
    look_up<S::DEEP>(table_x, base + r.x_first, at);
    look_up<S::DEEP>(table_lanes, base + r.x_first, lanes);
    if (t.x_together) {
        OLY_UNROLL
        for (int l = 0; l < S::DEEP; l += S::V) {
            OLY_UNROLL
            for (int k = 0; k < S::OWN; k++) {
                vector<A> v = {};
                if (is_inside(t, r.own[k], lanes[l]))
                    v = *(const vector<A> *)(r.own[k].x + at[l]);
                OLY_UNROLL
                for (int i = 0; i < S::V; i++)
                    x[k * S::DEEP + l + i] = v.of[i];
            }
        }
    } else if (t.shift == 0) {
        read_undilated_x<S>(t, r, at, lanes, x);
    } else {
        OLY_UNROLL
        for (int l = 0; l < S::DEEP; l++) {
            OLY_UNROLL
            for (int k = 0; k < S::OWN; k++) {
                A v = 0;
                if (is_element(t, r.own[k], lanes[l]))
                    v = r.own[k].x[(r.own[k].at + at[l]) >> t.shift];
                x[k * S::DEEP + l] = v;
            }
        }
    }
}
template <class S>
OLY_DEVICE void keep(const reading<S> &r, const typename S::A *w, const typename S::A *x, typename S::A *to_w,
                     typename S::A *to_x)
{
    OLY_UNROLL
    for (int k = 0; k < S::W_EACH; k++)
        to_w[r.w_store + k * r.w_store_step] = w[k];
    OLY_UNROLL
    for (int k = 0; k < S::OWN; k++) {
        OLY_UNROLL
        for (int l = 0; l < S::DEEP; l++)
            to_x[(r.x_first + l) * S::X_LINE + oly_thread() % S::PLACES + k * S::THREADS] = x[k * S::DEEP + l];
    }
}

/* As read_w, read_x and keep. */
template <class S> OLY_DEVICE void read_vector_of_w(const reading<S> &r, const int32_t *table_w, int base, typename S::A *w)
{
    using A = typename S::A;
    int32_t at = table_w[base + r.w_first];
    vector<A> v;
    OLY_UNROLL
    for (int i = 0; i < S::V; i++)
        v.of[i] = -0.0f;
    if (at != NO_ELEMENT)
        v = *(const vector<A> *)(r.w + at);
    OLY_UNROLL
    for (int i = 0; i < S::V; i++)
        w[i] = v.of[i];
}
template <class S>
OLY_DEVICE void read_vectors_of_x(const oly_cuda_convolve_task &t, const reading<S> &r, const table &of, int base,
                                  typename S::A *x)
{
    using A = typename S::A;
    int32_t at = of.x[base + r.x_first];
    uint32_t lanes = of.lanes[base + r.x_first];
    OLY_UNROLL
    for (int k = 0; k < S::OWN; k++) {
        uint32_t a = r.own[k].a + lanes; /* b is computed again: there are no registers left */
        vector<A> v = {};
        if ((a & ~(a - t.lane_extent) & t.inside) == t.inside)
            v = *(const vector<A> *)(r.own[k].x + at);
        OLY_UNROLL
        for (int i = 0; i < S::V; i++)
            x[k * S::DEEP + i] = v.of[i];
    }
}
template <class S>
OLY_DEVICE void keep_vectors(const reading<S> &r, const typename S::A *w, const typename S::A *x, typename S::A *to_w,
                             typename S::A *to_x)
{
    if constexpr (S::WAY == TOGETHER) {
        vector<typename S::A> v;
        OLY_UNROLL
        for (int i = 0; i < S::V; i++)
            v.of[i] = w[i];
        *(vector<typename S::A> *)(to_w + r.w_store) = v;
    } else {
        OLY_UNROLL
        for (int i = 0; i < S::V; i++)
            to_w[r.w_store + i * S::W_LINE] = w[i];
    }
    int place = S::WAY == TOGETHER ? oly_thread() / S::BESIDE : oly_thread() % S::PLACES;
    OLY_UNROLL
    for (int k = 0; k < S::OWN; k++) {
        OLY_UNROLL
        for (int l = 0; l < S::DEEP; l++)
            to_x[(r.x_first + l) * S::X_LINE + place + k * (S::THREADS / S::BESIDE)] = x[k * S::DEEP + l];
    }
}

template <class S>
OLY_DEVICE void read_next(const oly_cuda_convolve_task &t, const reading<S> &r, const table &of, int base,
                          typename S::A *w, typename S::A *x)
{
    if constexpr (S::WAY == ANY) {
        read_w<S>(r, of.w, base, w);
        read_x<S>(t, r, of.x, of.lanes, base, x);
    } else if constexpr (S::WAY == TOGETHER) {
        read_vector_of_w<S>(r, of.w, base, w);
        read_vectors_of_x<S>(t, r, of, base, x);
    } else {
        int32_t at[S::DEEP];
        uint32_t lanes[S::DEEP];
        look_up<S::DEEP>(of.x, base + r.x_first, at);
        look_up<S::DEEP>(of.lanes, base + r.x_first, lanes);
        read_vector_of_w<S>(r, of.w, base, w);
        read_undilated_x<S>(t, r, at, lanes, x);
    }
}
template <class S>
OLY_DEVICE void keep_next(const reading<S> &r, const typename S::A *w, const typename S::A *x, typename S::A *to_w,
                          typename S::A *to_x)
{
    if constexpr (S::WAY == ANY)
        keep<S>(r, w, x, to_w, to_x);
    else
        keep_vectors<S>(r, w, x, to_w, to_x);
}

template <class S>
OLY_DEVICE void multiply(const typename S::A *of_w, const typename S::A *of_x, typename S::A (&sum)[S::ROWS][S::COLUMNS])
{
    using A = typename S::A;
    OLY_UNROLL
    for (int l = 0; l < DEPTH; l++) {
        vector<A> w[S::ROWS / S::V], x[S::COLUMNS / S::V];
        OLY_UNROLL
        for (int k = 0; k < S::ROWS / S::V; k++)
            w[k] = *(const vector<A> *)(of_w + l * S::W_LINE + k * S::DOWN * S::V);
        OLY_UNROLL
        for (int k = 0; k < S::COLUMNS / S::V; k++)
            x[k] = *(const vector<A> *)(of_x + l * S::X_LINE + k * S::ACROSS * S::V);
        OLY_UNROLL
        for (int r = 0; r < S::ROWS; r++) {
            OLY_UNROLL
            for (int c = 0; c < S::COLUMNS; c++)
                sum[r][c] = added(sum[r][c], w[r / S::V].of[r % S::V], x[c / S::V].of[c % S::V]);
        }
    }
}

/* Features side by side. */
template <class S>
OLY_DEVICE void write_last(int features, int columns, int row, int rows, int column, typename S::A *to,
                           const typename S::A (&sum)[S::ROWS][S::COLUMNS])
{
    using A = typename S::A;
    int first_row = oly_thread() / S::ACROSS * S::V, first_column = oly_thread() % S::ACROSS * S::V;
    bool together = (features | row) % S::V == 0; /* aligned */
    OLY_UNROLL
    for (int c = 0; c < S::COLUMNS; c++) {
        int at = column + first_column + c / S::V * S::ACROSS * S::V + c % S::V;
        if (at >= columns)
            continue;
        A *line = to + (int64_t)at * features + row;
        OLY_UNROLL
        for (int r = 0; r < S::ROWS; r += S::V) {
            int k = first_row + r / S::V * S::DOWN * S::V;
            if (together && k + S::V <= rows) {
                vector<A> v;
                OLY_UNROLL
                for (int i = 0; i < S::V; i++)
                    v.of[i] = sum[r + i][c];
                *(vector<A> *)(line + k) = v;
                continue;
            }
            OLY_UNROLL
            for (int i = 0; i < S::V; i++)
                if (k + i < rows)
                    line[k + i] = sum[r + i][c];
        }
    }
}
template <class S>
OLY_DEVICE void write(const oly_cuda_convolve_task &t, int part, int row, int rows, int column,
                      const typename S::A (&sum)[S::ROWS][S::COLUMNS])
{
    using A = typename S::A;
    int features = t.end - t.begin, first_row = oly_thread() / S::ACROSS * S::V,
        first_column = oly_thread() % S::ACROSS * S::V;
    A *to = t.parts > 1 ? (A *)t.partial + (int64_t)part * features * t.columns : (A *)t.out;
    if (t.out_last) {
        write_last<S>(features, t.columns, row, rows, column, to, sum);
        return;
    }
    OLY_UNROLL
    for (int c = 0; c < S::COLUMNS; c += S::V) {
        int at = column + first_column + c / S::V * S::ACROSS * S::V;
        if (t.places % S::V == 0 && at + S::V <= t.columns) { /* of one batch element, and aligned */
            int batch = at / t.places;
            A *line = to + ((int64_t)batch * features + row) * t.places + (at - batch * t.places);
            OLY_UNROLL
            for (int r = 0; r < S::ROWS; r++) {
                int k = first_row + r / S::V * S::DOWN * S::V + r % S::V;
                vector<A> v;
                OLY_UNROLL
                for (int i = 0; i < S::V; i++)
                    v.of[i] = sum[r][c + i];
                if (k < rows)
                    *(vector<A> *)(line + (int64_t)k * t.places) = v;
            }
            continue;
        }
        OLY_UNROLL
        for (int i = 0; i < S::V; i++) {
            int batch = (at + i) / t.places;
            A *line = to + ((int64_t)batch * features + row) * t.places + (at + i - batch * t.places);
            OLY_UNROLL
            for (int r = 0; r < S::ROWS; r++) {
                int k = first_row + r / S::V * S::DOWN * S::V + r % S::V;
                if (k < rows && at + i < t.columns)
                    line[(int64_t)k * t.places] = sum[r][c + i];
            }
        }
    }
}

template <class S> struct memory { /* shared */
    vector<typename S::A> w[2][DEPTH * S::W_LINE / S::V], x[2][DEPTH * S::X_LINE / S::V];
    table of;
};
template <class S>
OLY_DEVICE void convolve_tile(const oly_cuda_convolve_task &t, memory<S> &m, int group, int row, int rows, int column,
                              int part)
{
    using A = typename S::A;
    int begin = part * t.depth, end = t.n - begin < t.depth ? t.n : begin + t.depth;
    int steps = (end - begin + DEPTH - 1) / DEPTH;
    A sum[S::ROWS][S::COLUMNS] = {}, w[S::W_EACH], x[S::X_EACH];
    reading<S> r;
    begin_reading<S>(t, group, row, rows, column, &r);
    fill(t, begin, m.of.x, m.of.w, m.of.lanes);
    oly_barrier();
    read_next<S>(t, r, m.of, 0, w, x);
    keep_next<S>(r, w, x, (A *)m.w[0], (A *)m.x[0]);
    oly_barrier();
    OLY_NO_UNROLL
    for (int step = 1; step <= steps; step++) {
        int now = (step - 1) & 1;
        if (step < steps) { /* the next elements are on their way while these are multiplied */
            int base = step * DEPTH % LISTED;
            if (base == 0) {
                fill(t, begin + step * DEPTH, m.of.x, m.of.w, m.of.lanes);
                oly_barrier();
            }
            read_next<S>(t, r, m.of, base, w, x);
        }
        multiply<S>((const A *)m.w[now] + oly_thread() / S::ACROSS * S::V,
                    (const A *)m.x[now] + oly_thread() % S::ACROSS * S::V, sum);
        if (step < steps)
            keep_next<S>(r, w, x, (A *)m.w[1 - now], (A *)m.x[1 - now]);
        oly_barrier();
    }
    write<S>(t, part, row, rows, column, sum);
}
/* Tiles of one strip of places are computed one after the other, so that it is in the cache. */
template <class S> OLY_DEVICE void convolve(const oly_cuda_convolve_task &t, memory<S> &m)
{
    int64_t rest = (int64_t)t.row_blocks * t.groups, tiles = rest * t.strips;
    for (int64_t k = oly_block(); k < tiles * t.parts; k += oly_blocks()) {
        int part = (int)(k / tiles), at = (int)(k % tiles), strip = at / (int)rest, of_strip = at - strip * (int)rest;
        int group = t.first + of_strip / t.row_blocks;
        int row = group * t.per_group + of_strip % t.row_blocks * S::FEATURES, last = row + S::FEATURES;
        last = last < (group + 1) * t.per_group ? last : (group + 1) * t.per_group;
        row = row > t.begin ? row : t.begin;
        last = last < t.end ? last : t.end;
        if (row < last)
            convolve_tile<S>(t, m, group, row - t.begin, last - row, strip * S::PLACES, part);
    }
}
#define TILES(s, blocks, ...)                                                                                          \
    using tile_##s = tile<__VA_ARGS__>;                                                                                \
    OLY_KERNEL_BLOCK_BOUNDED(oly_convolve_##s, oly_cuda_convolve_task, tile_##s::THREADS, blocks)                      \
    {                                                                                                                  \
        OLY_SHARED(memory<tile_##s>, shared, 1);                                                                       \
        convolve<tile_##s>(task, shared[0]);                                                                           \
    }
TILES(f32_128, 2, float, 128, 128, 8, 8)
TILES(f32_64, 4, float, 64, 128, 8, 8)
TILES(f32_128_last, 2, float, 128, 128, 8, 8, TOGETHER)
TILES(f32_64_last, 4, float, 64, 128, 8, 8, TOGETHER)
TILES(f32_128_whole, 2, float, 128, 128, 8, 8, WHOLE)
TILES(f32_64_whole, 4, float, 64, 128, 8, 8, WHOLE)
TILES(f32_32, 3, float, 32, 256, 8, 8)
TILES(f64_64, 3, double, 64, 64, 4, 8)

/* -- few features --------------------------------------------------------------------------------------------------------------------- */
/* A thread computes EACH features at one place, whose elements are at the same offsets from where their groups begin. */
template <class A> struct alignas(16) few_elements {
    A w[EACH];
    int32_t x;
    uint32_t lanes;
};
template <class A, int FEATURES, bool DILATED>
OLY_DEVICE void sum_few(const oly_cuda_convolve_task &t, const few_elements<A> *of, int n, const place<A> &p,
                        const A *const *x, A *sum)
{
    for (int l = 0; l < n; l++) {
        const few_elements<A> &e = of[l]; /* not a copy: there may be nothing at its end */
        int32_t at = DILATED ? (p.at + e.x) >> t.shift : e.x;
        bool inside = DILATED ? is_element(t, p, e.lanes) : is_inside(t, p, e.lanes);
        OLY_UNROLL
        for (int k = 0; k < FEATURES; k++) {
            A v = 0;
            if (inside)
                v = x[k][at];
            sum[k] = added(sum[k], e.w[k], v);
        }
    }
}
template <class A> OLY_DEVICE void convolve_few(const oly_cuda_convolve_task &t, few_elements<A> *of)
{
    int features = t.end - t.begin, rows = (features + EACH - 1) / EACH;
    int64_t tiles = (int64_t)rows * t.strips;
    for (int64_t k = oly_block(); k < tiles * t.parts; k += oly_blocks()) {
        int part = (int)(k / tiles), row = (int)(k % tiles) % rows * EACH, column = (int)(k % tiles) / rows * oly_threads();
        int begin = part * t.depth, end = t.n - begin < t.depth ? t.n : begin + t.depth;
        A sum[EACH] = {};
        const A *x[EACH];
        place<A> p;
        column += oly_thread();
        find_place(t, 0, column, &p);
        OLY_UNROLL
        for (int i = 0; i < EACH; i++) {
            x[i] = p.x + (t.begin + (row + i < features ? row + i : row)) / t.per_group * t.x_group;
            KEEP_POINTER(x[i]);
        }
        for (int from = begin; from < end; from += LISTED) {
            int most = end - from < LISTED ? end - from : (int)LISTED;
            oly_barrier();
            for (int l = oly_thread(); l < most; l += oly_threads()) {
                element e = element_at(t, from + l);
                of[l].x = e.x, of[l].lanes = e.lanes;
                OLY_UNROLL
                for (int i = 0; i < EACH; i++)
                    of[l].w[i] = ((const A *)t.w)[(row + i < features ? row + i : row) * t.w_row + e.w];
            }
            oly_barrier();
            if (t.shift)
                sum_few<A, EACH, true>(t, of, most, p, x, sum);
            else if (row + 1 < features)
                sum_few<A, EACH, false>(t, of, most, p, x, sum);
            else
                sum_few<A, 1, false>(t, of, most, p, x, sum);
        }
        A *to = t.parts > 1 ? (A *)t.partial + (int64_t)part * features * t.columns : (A *)t.out;
        int batch = column / t.places;
        OLY_UNROLL
        for (int i = 0; i < EACH; i++)
            if (column < t.columns && row + i < features)
                to[t.out_last ? (int64_t)column * features + row + i
                              : ((int64_t)batch * features + row + i) * t.places + (column - batch * t.places)] = sum[i];
    }
}
template <class A> OLY_DEVICE void add_parts(const oly_cuda_convolve_task &t)
{
    int64_t n = (int64_t)(t.end - t.begin) * t.columns;
    const A *partial = (const A *)t.partial;
    for (int64_t i = oly_index(); i < n; i += oly_stride()) {
        A sum = partial[i];
        for (int part = 1; part < t.parts; part++)
            sum += partial[part * n + i];
        ((A *)t.out)[i] = sum;
    }
}
#define FEW_FEATURES(s, A)                                                                                             \
    OLY_KERNEL_BLOCK_BOUNDED(oly_convolve_few_##s, oly_cuda_convolve_task, OLY_CUDA_THREADS, 4)                        \
    {                                                                                                                  \
        OLY_SHARED(few_elements<A>, of, LISTED);                                                                       \
        convolve_few<A>(task, of);                                                                                     \
    }                                                                                                                  \
    OLY_KERNEL(oly_convolve_add_##s, oly_cuda_convolve_task)                                                           \
    {                                                                                                                  \
        add_parts<A>(task);                                                                                            \
    }
FEW_FEATURES(f32, float)
FEW_FEATURES(f64, double)
