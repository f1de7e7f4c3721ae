/* SPDX-License-Identifier: BSD-3-Clause */
/* Places the operands of an oracle case. Called by the checkers of the oracle runner. */
#include "oracle.h"
#include <stdlib.h>
#include <string.h>

bool oracle_mesh(oracle_run *run, oly_mesh *mesh)
{
    const oracle_line *line = check_oracle_line(run->c, "mesh", 0);
    char name[OLY_MAX_RANK][32];
    const char *names[OLY_MAX_RANK];
    int sizes[OLY_MAX_RANK], devices = 1;
    *mesh = NULL;
    if (!line)
        return true;
    for (int k = 1; k < line->n_words; k++) {
        const char *equals = strchr(line->words[k], '=');
        if (!equals || k > OLY_MAX_RANK)
            return oracle_fail(run, "line %d: what mesh is this?", line->number);
        snprintf(name[k - 1], sizeof name[0], "%.*s", (int)(equals - line->words[k]), line->words[k]);
        names[k - 1] = name[k - 1];
        sizes[k - 1] = atoi(equals + 1); /* ":auto" may follow, the only kind of axis there is */
        devices *= sizes[k - 1];
    }
    const oracle_line *order = check_oracle_line(run->c, "devices", 0);
    int64_t listed[64];
    int list[64], n_listed = order ? check_oracle_list(order->words[1], listed, 64) : 0;
    if (order && n_listed != devices)
        return oracle_fail(run, "line %d: one device for each position", order->number);
    for (int k = 0; k < n_listed; k++)
        list[k] = (int)listed[k];
    if (devices > oly_device_count())
        return oracle_skip(run, "needs %d devices, there are %d", devices, oly_device_count());
    *mesh = oly_mesh_from_devices(line->n_words - 1, names, sizes, order ? list : NULL);
    return *mesh ? true : oracle_fail_call(run, "making the mesh");
}

/* "P(None;U=x+y)" in Olympus's notation: "P(None,unreduced={x,y})". */
oly_sharding oracle_sharding(oly_mesh mesh, const char *spec)
{
    char text[512] = "";
    if (!mesh || strcmp(spec, "-") == 0)
        return NULL;
    bool set = false;
    for (size_t n = 0; *spec && n + 16 < sizeof text; spec++) {
        if (*spec == ';' || (set && *spec == ')')) {
            bool first = n == 2, more = *spec == ';';
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", set ? "}" : "", more ? first ? "" : "," : ")");
            if (more)
                n += (size_t)snprintf(text + n, sizeof text - n, "%s={", spec[1] == 'U' ? "unreduced" : "reduced");
            spec += more ? 2 : 0; /* "U=" */
            set = more;
        } else {
            text[n++] = set && *spec == '+' ? ',' : *spec;
        }
        text[n] = 0;
    }
    return oly_named(mesh, text);
}

/* Cases about shardings have no values: small numbers, no two neighbours equal. */
static oly_array made_up(const oracle_array *host)
{
    int64_t n = 1;
    for (int d = 0; d < host->rank; d++)
        n *= host->shape[d];
    oly_array count = oly_reshape_shape(oly_arange(n, OLY_FLOAT32), host->rank, host->shape);
    return oly_astype(oly_mul(oly_sin(oly_mul(count, 0.7)), 8), (oly_dtype)host->known_dtype);
}

static oly_array place(oracle_run *run, oly_mesh mesh, const oracle_line *line)
{
    oracle_array host;
    if (!check_oracle_array(run->family, line, &host)) {
        oracle_fail(run, "line %d cannot be read", line->number);
        return NULL;
    }
    oly_array x = NULL;
    if (host.known_dtype < 0)
        oracle_skip(run, "dtype %s is not there yet", host.dtype);
    else if (!host.data)
        x = made_up(&host);
    else
        x = oly_from_host(host.data, (oly_dtype)host.known_dtype, host.rank, host.shape);
    check_oracle_array_free(&host);
    oly_sharding sharding = oracle_sharding(mesh, line->words[4]);
    return x && sharding ? oly_device_put(x, sharding) : x;
}

int oracle_inputs(oracle_run *run, oly_mesh mesh, oly_array *inputs, int most)
{
    int n = 0;
    for (const oracle_line *line; (line = check_oracle_line(run->c, "in", n)); n++) {
        if (n == most) {
            oracle_fail(run, "more than %d operands", most);
            return -1;
        }
        inputs[n] = place(run, mesh, line);
        if (!inputs[n]) {
            if (!run->failed && !run->skipped)
                oracle_fail_call(run, "placing the operands");
            return -1;
        }
    }
    return n;
}
