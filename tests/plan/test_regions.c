/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  What the planner derives from splits alone, on meshes of many devices, agrees with an enumeration of
 * devices and parts: which cuts are equal, which regions are inside a layout, who needs part of a block, whose the
 * devices are. */
#include "check.h"
#include "plan/move/find_receivers.h"
#include <olympus.h>

static uint32_t seed = 1;

static int64_t pick(int64_t lowest, int64_t highest)
{
    seed = seed * 1664525u + 1013904223u;
    return lowest + (int64_t)((uint64_t)(seed >> 4) * (uint64_t)(highest - lowest + 1) >> 28);
}

/* A random split over some of the axes that are left. Most are what slices and reshapes of balanced blocks have. */
static oly_split any_split(oly_mesh mesh, unsigned *left, int64_t n)
{
    oly_axis_list axes = {0};
    while (*left && pick(0, 2) > 0) {
        int a = (int)pick(0, mesh->n_axes - 1);
        if (*left >> a & 1)
            axes.axis[axes.n++] = (uint8_t)a;
        *left &= ~(1u << a);
    }
    oly_split s = oly_split_canonical(mesh, &axes, n);
    int64_t unit = pick(0, 3) ? 1 : pick(1, 4);
    s.base = n * pick(1, 2) + pick(0, 3) * unit;
    s.base += (unit - s.base % unit) % unit;
    s.unit = unit;
    s.start = pick(0, 2) ? 0 : pick(-3, 5);
    s.step = pick(0, 5) ? 1 : pick(1, 3);
    return s;
}

static oly_mesh any_mesh(int devices)
{
    static const char *const axes[] = {"a=%d",      "a=%d, b=2",      "a=3, b=%d",
                                       "a=%d, b=5", "a=2, b=%d, c=3", "a=7, b=%d, c=2"};
    static const int rest[] = {1, 2, 3, 5, 6, 14};
    char text[64];
    int k = (int)pick(0, 5);
    while (devices < rest[k])
        k = (int)pick(0, 5);
    snprintf(text, sizeof text, axes[k], (int)pick(1, devices / rest[k]));
    return oly_make_mesh(text);
}

/* A job for the arithmetic alone, without communication. */
static int start_job(void)
{
    int processes = (int)pick(1, 40), counts[40], total = 0;
    bool alike = pick(0, 1);
    for (int r = 0; r < processes; r++)
        total += counts[r] = r && alike ? counts[0] : (int)pick(r ? 0 : 1, 9);
    if (alike)
        assert_int_equal(oly_mesh_set_devices_alike(processes, counts[0], processes - 1), OLY_OK);
    else
        assert_int_equal(oly_mesh_set_devices(processes, counts, processes - 1), OLY_OK);
    assert_int_equal(oly_mesh_total_devices(), total);
    for (int id = 0, r = 0, before = 0; id < total; id++) {
        while (id - before >= counts[r])
            before += counts[r++];
        assert_int_equal(oly_mesh_process_of(id), r);
    }
    return total;
}

static oly_mesh shuffled(oly_mesh mesh, int total)
{
    int *ids = malloc(sizeof *ids * (size_t)total);
    assert_non_null(ids);
    for (int k = 0; k < total; k++)
        ids[k] = k;
    for (int k = total - 1; k > 0; k--) {
        int j = (int)pick(0, k), kept = ids[k];
        ids[k] = ids[j];
        ids[j] = kept;
    }
    const char *names[OLY_MAX_RANK];
    for (int a = 0; a < mesh->n_axes; a++)
        names[a] = mesh->name[a];
    oly_mesh made = oly_mesh_from_devices(mesh->n_axes, names, mesh->size, ids);
    assert_ptr_equal(made, oly_mesh_from_devices(mesh->n_axes, names, mesh->size, ids));
    free(ids);
    return made;
}

/* -- whose the devices are --------------------------------------------------------------------------------------------- */

static int run_length(oly_mesh mesh, int axis)
{
    int together = 1, coordinates[OLY_MAX_RANK], before[OLY_MAX_RANK];
    while (together < mesh->size[axis])
        together *= 2;
    for (int p = 0; p < mesh->n_devices; p++) {
        oly_mesh_coordinates(mesh, p, coordinates);
        memcpy(before, coordinates, sizeof before);
        int c = coordinates[axis];
        before[axis]--;
        while (c % together != 0 && oly_mesh_process_of(oly_mesh_device_id(mesh, p)) !=
                                        oly_mesh_process_of(oly_mesh_device_id(mesh, oly_mesh_position(mesh, before))))
            together /= 2;
    }
    return together;
}

static void check_mesh(oly_mesh mesh)
{
    const int *local;
    int n = oly_mesh_local_positions(mesh, &local), found = 0, first = oly_mesh_process_of(oly_mesh_device_id(mesh, 0));
    bool several = false;
    for (int p = 0; p < mesh->n_devices; p++) {
        int id = oly_mesh_device_id(mesh, p), process = oly_mesh_process_of(id);
        assert_int_equal(oly_mesh_position_of(mesh, id), p);
        several = several || process != first;
        if (process == oly_mesh_my_process()) {
            assert_true(found < n);
            assert_int_equal(local[found++], p);
        }
    }
    assert_int_equal(found, n);
    assert_int_equal(mesh->process, several ? -1 : first);
    for (int a = 0; a < mesh->n_axes; a++)
        assert_int_equal(mesh->together[a], run_length(mesh, a));
}

static void meshes_know_whose_their_devices_are(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        int total = start_job();
        oly_mesh mesh = any_mesh(total);
        check_mesh(mesh);
        check_mesh(shuffled(mesh, total));
        oly_layout_stop();
    }
}

/* -- splits and regions ------------------------------------------------------------------------------------------------- */

static void equal_splits_have_equal_cuts(void **state)
{
    (void)state;
    int equal = 0;
    assert_int_equal(oly_mesh_set_devices_alike(60, 5, 0), OLY_OK);
    for (int round = 0; round < 20000; round++) {
        oly_mesh mesh = any_mesh(300);
        int64_t n = pick(0, 900);
        unsigned all = (1u << mesh->n_axes) - 1;
        oly_split a = any_split(mesh, &all, n), b = a;
        b.base += pick(0, 2) ? 0 : pick(-2, 2) * a.unit;
        b.start += pick(0, 1) ? 0 : pick(-1, 1);
        b.step = pick(0, 9) ? a.step : pick(1, 2);
        bool same = true;
        for (int k = 0; k <= a.parts; k++)
            same = same && oly_split_cut(&a, n, k) == oly_split_cut(&b, n, k);
        assert_int_equal(oly_split_equal(&a, &b, n), same);
        equal += same;
    }
    assert_in_range(equal, 1000, 19000);
    oly_layout_stop();
}

static oly_region_dim any_region(const oly_split *of, oly_mesh mesh, unsigned *left, int64_t n)
{
    oly_region_dim r = {.split = *of, .n = n, .scale = 1};
    switch (pick(0, 7)) {
    case 0: break;
    case 1: /* margins */
        r.lo = -pick(0, 2);
        r.hi = pick(0, 2);
        break;
    case 2: /* a slice with cuts of its own */
        r.scale = pick(1, 3);
        r.lo = r.hi = pick(0, 3);
        r.n = (n + r.scale - 1) / r.scale;
        r.split = oly_split_sliced(of, r.lo, r.scale);
        break;
    case 3: /* reversed */
        r.scale = -1;
        r.lo = r.hi = n - 1;
        break;
    case 4: /* split further */
        for (int a = 0; a < mesh->n_axes; a++)
            if (*left >> a & 1)
                r.split.axes.axis[r.split.axes.n++] = (uint8_t)a;
        r.split.parts = oly_axis_list_parts(mesh, &r.split.axes);
        *left = 0;
        break;
    case 5: /* zeros between the elements */
        r.spread = pick(2, 3);
        r.n = n * r.spread;
        r.split = oly_split_spread(of, 0, r.spread);
        r.lo = -pick(0, 1);
        r.hi = pick(0, 1);
        break;
    case 6: /* every second or third element of a larger one */
        r.split.step = pick(2, 3);
        r.split.base = (n + pick(0, 1)) * r.split.step;
        r.split.start = pick(0, (int)r.split.step);
        r.split.unit = 1;
        break;
    default: /* split otherwise */ r.split.base += pick(0, 2) * r.split.unit; r.split.start += pick(-1, 1);
    }
    return r;
}

static void regions_inside_layouts_are_inside_on_every_device(void **state)
{
    (void)state;
    int inside = 0, wrong = 0;
    assert_int_equal(oly_mesh_set_devices_alike(60, 5, 0), OLY_OK);
    for (int round = 0; round < 20000; round++) {
        oly_mesh mesh = any_mesh(300);
        int64_t n = pick(1, 900);
        unsigned left = (1u << mesh->n_axes) - 1;
        oly_layout l = {.mesh = mesh, .rank = 1, .shape = {n}};
        l.split[0] = any_split(mesh, &left, n);
        oly_region r = {.mesh = mesh, .rank = 1};
        r.dim[0] = any_region(&l.split[0], mesh, &left, n);
        bool all = true;
        for (int p = 0; p < mesh->n_devices; p++) {
            oly_box wanted = oly_region_box(&r, l.shape, p), held = oly_layout_box(&l, p);
            all = all && oly_box_contains(&held, &wanted);
        }
        if (oly_region_inside_layout(&r, &l) != all)
            print_message(
                "%d of %d parts, base %lld unit %lld start %lld step %lld in base %lld unit %lld start %lld step "
                "%lld of %lld: scale %lld + [%lld, %lld], %d\n",
                r.dim[0].split.parts, l.split[0].parts, (long long)r.dim[0].split.base, (long long)r.dim[0].split.unit,
                (long long)r.dim[0].split.start, (long long)r.dim[0].split.step, (long long)l.split[0].base,
                (long long)l.split[0].unit, (long long)l.split[0].start, (long long)l.split[0].step, (long long)n,
                (long long)r.dim[0].scale, (long long)r.dim[0].lo, (long long)r.dim[0].hi, all);
        wrong += oly_region_inside_layout(&r, &l) != all;
        inside += all;
    }
    assert_int_equal(wrong, 0);
    assert_in_range(inside, 2000, 18000);
    oly_layout_stop();
}

/* The first part of a split, and of a region, that contains something beyond an element: as an enumeration of parts
 * finds it. */
static void parts_are_found_without_looking_for_them(void **state)
{
    (void)state;
    assert_int_equal(oly_mesh_set_devices_alike(60, 5, 0), OLY_OK);
    for (int round = 0; round < 20000; round++) {
        oly_mesh mesh = any_mesh(60);
        int64_t n = pick(1, 150), i = pick(-2, n + 1), at = pick(0, n - 1), end = pick(at + 1, n);
        unsigned left = (1u << mesh->n_axes) - 1;
        oly_split s = any_split(mesh, &left, n);
        int part = 0, beyond = 0, first, last;
        while (part < s.parts - 1 && oly_split_cut(&s, n, part + 1) <= i)
            part++;
        while (beyond < s.parts && oly_split_cut(&s, n, beyond) <= i)
            beyond++;
        assert_int_equal(oly_split_part_of(&s, n, i), part);
        assert_int_equal(oly_split_first_beyond(&s, n, i), beyond);
        oly_region_dim r = any_region(&s, mesh, &left, n);
        r.spread = pick(0, 3) ? 0 : 2;
        if (pick(0, 3) == 0)
            r.scale = pick(-3, 3);
        oly_region_parts(&r, at, end, &first, &last);
        for (int k = 0; k < r.split.parts; k++) {
            int64_t lo, hi;
            oly_region_range(&r, n, k, &lo, &hi);
            assert_true(lo >= end || hi <= at || (first <= k && k <= last));
            assert_true(k < first || k > last || hi <= lo || (lo < end && hi > at));
        }
    }
    oly_layout_stop();
}

static void receivers_are_those_whose_boxes_meet(void **state)
{
    (void)state;
    assert_int_equal(oly_mesh_set_devices_alike(30, 4, 0), OLY_OK);
    for (int round = 0; round < 4000; round++) {
        oly_mesh mesh = any_mesh(120);
        unsigned left = (1u << mesh->n_axes) - 1;
        int64_t shape[2] = {pick(1, 60), pick(1, 60)};
        oly_region to = {.mesh = mesh, .rank = 2};
        oly_box box = {.rank = 2};
        int fixed[OLY_MAX_RANK], coordinates[OLY_MAX_RANK], last = -1;
        for (int d = 0; d < 2; d++) {
            oly_split s = any_split(mesh, &left, shape[d]);
            unsigned none = 0;
            to.dim[d] = any_region(&s, mesh, &none, shape[d]);
            box.lo[d] = pick(0, shape[d] - 1);
            box.hi[d] = pick(box.lo[d] + 1, shape[d]);
        }
        for (int a = 0; a < mesh->n_axes; a++)
            fixed[a] = pick(0, 2) ? -1 : (int)pick(0, mesh->size[a] - 1);
        bool *listed = calloc((size_t)mesh->n_devices, sizeof *listed);
        assert_non_null(listed);
        oly_receivers r = oly_receivers_of(&to, &box, fixed);
        for (int n = 0; oly_receivers_next(&r, &last); n++) {
            assert_in_range(last, 0, mesh->n_devices - 1);
            assert_false(listed[last]);
            listed[last] = true;
        }
        for (int p = 0; p < mesh->n_devices; p++) {
            oly_box wanted = oly_region_box(&to, shape, p), shared = oly_box_intersect(&wanted, &box);
            bool asked = true;
            oly_mesh_coordinates(mesh, p, coordinates);
            for (int a = 0; a < mesh->n_axes; a++)
                asked = asked && (fixed[a] < 0 || fixed[a] == coordinates[a]);
            if (asked && oly_box_count(&shared) > 0)
                assert_true(listed[p]);
            if (listed[p])
                assert_true(asked);
        }
        free(listed);
    }
    oly_layout_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meshes_know_whose_their_devices_are),
        cmocka_unit_test(equal_splits_have_equal_cuts),
        cmocka_unit_test(regions_inside_layouts_are_inside_on_every_device),
        cmocka_unit_test(parts_are_found_without_looking_for_them),
        cmocka_unit_test(receivers_are_those_whose_boxes_meet),
    };
    return CHECK_MAIN(tests);
}
