/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1  Manifests of checkpoints: what is written is read back; manifests made to harm are refused, naming the line and the
 * reason, also with a right checksum at their end. */
#include "check.h"
#include "file/manifest.h"

static const char good[] = "olympus-checkpoint 1\n"
                           "step 7\n"
                           "chunk 4096\n"
                           "text a%20line\n"
                           "values 2 -9223372036854775808 9223372036854775807\n"
                           "arrays 2\n"
                           "array w float32 2 4 6 x\n"
                           "array b%2fc int64 0 -\n"
                           "part 0 a.npy 176 0 0 2 6 00000001\n"
                           "part 0 b.npy 176 2 0 2 6 00000002\n"
                           "part 1 c.npy 136 ffffffff\n";

/* The text with `from` replaced by `to`, and the right end; NULL: as it is. Returns its length. */
static size_t changed(char *text, size_t room, const char *from, const char *to)
{
    const char *at = from ? strstr(good, from) : good;
    assert_non_null(at);
    int n = snprintf(text, room, "%.*s%s%s", (int)(at - good), good, from ? to : "", at + (from ? strlen(from) : 0));
    return (size_t)n + (size_t)snprintf(text + n, room - (size_t)n, "end %08x\n", oly_checksum(0, text, (size_t)n));
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    oly_manifest m, again;
    oly_text t = {0};
    char text[4096];
    assert_int_equal(oly_manifest_read(text, changed(text, sizeof text, NULL, NULL), &m), OLY_OK);
    assert_int_equal(m.step, 7);
    assert_string_equal(m.text, "a line");
    assert_int_equal(m.value[0], INT64_MIN);
    assert_int_equal(m.value[1], INT64_MAX);
    assert_int_equal(oly_manifest_find(&m, "b/c"), 1);
    assert_int_equal(oly_manifest_find(&m, "b"), -1);
    assert_int_equal(m.array[0].n_parts, 2);
    assert_int_equal(m.array[0].part[1].start[0], 2);
    oly_manifest_add_head(&t, m.step, m.chunk, m.text, m.n_values, m.value, m.n_arrays);
    for (int k = 0; k < m.n_arrays; k++)
        oly_manifest_add_array(&t, m.array[k].name, m.array[k].dtype, m.array[k].rank, m.array[k].shape,
                               m.array[k].sharding);
    for (int k = 0; k < m.n_parts; k++)
        oly_manifest_add_part(&t, &m.part[k], m.array[m.part[k].array].rank);
    oly_manifest_add_end(&t);
    assert_string_equal(oly_text_chars(&t), text);
    assert_int_equal(oly_manifest_read(t.chars, t.length, &again), OLY_OK);
    oly_manifest_free(&again);
    oly_manifest_free(&m);
    oly_text_free(&t);
}

static const struct {
    const char *from, *to, *reason;
} hostile[] = {{"checkpoint 1", "checkpoint 2", "version 2"},
               {"checkpoint 1", "checkpoint 99999999999999999999", "the version"},
               {"olympus-", "orbax-", "not one of Olympus"},
               {"step 7", "step -1", "the step"},
               {"step 7", "step 07", "the step"},
               {"step 7", "step 7 ", "more, or less"},
               {"chunk 4096", "chunk 0", "the size of chunks"},
               {"chunk 4096", "chunk 9223372036854775807", "the size of chunks"},
               {"a%20line", "a%2", "%XX"},
               {"a%20line", "a%00line", "%XX"},
               {"a%20line", "a/line", "%XX"},
               {"values 2", "values 9999999999", "the number of values"},
               {"values 2", "values 3", "a value"},
               {"9223372036854775807", "9223372036854775808", "a value"},
               {"arrays 2", "arrays 1000000000", "the number of arrays"},
               {"arrays 2", "arrays 3", "\"array\" is missing"},
               {"b%2fc", "w", "two arrays named"},
               {"b%2fc", "-", "empty"},
               {"float32", "float31", "no such element type"},
               {"2 4 6 x", "13 4 6 x", "the number of dimensions"},
               {"2 4 6 x", "2 9223372036854775807 6 x", "an extent"},
               {"2 4 6 x", "2 4294967296 4294967296 x", "an extent"},
               {"2 4 6 x", "2 4 -6 x", "an extent"},
               {"2 4 6 x", "2 5 6 x", "not all parts"},
               {"2 4 6 x", "2 0 6 x", "the beginning of a part"},
               {"a.npy", "../a.npy", "a file's name"},
               {"a.npy", "/etc/passwd", "a file's name"},
               {"a.npy", ".", "a file's name"},
               {"a.npy", "..", "a file's name"},
               {"a.npy", ".hidden", "a file's name"},
               {"a.npy", "a%2f..", "a file's name"},
               {"a.npy", "b.npy", "the file b.npy twice"},
               {"a.npy 176", "a.npy 48", "does not fit"},
               {"a.npy 176", "a.npy 9223372036854775807", "the size of a file"},
               {"a.npy 176", "a.npy 1073741824", "does not fit"},
               {"part 0 a", "part 2 a", "the number of an array"},
               {"part 0 a", "part -1 a", "the number of an array"},
               {"176 2 0 2 6", "176 1 0 2 6", "overlap: a.npy and b.npy"},
               {"176 2 0 2 6", "176 2 0 3 6", "the extent of a part"},
               {"176 2 0 2 6", "176 4 0 2 6", "the beginning of a part"},
               {"176 2 0 2 6", "176 2 0 0 6", "the extent of a part"},
               {"176 2 0 2 6", "176 2 0 9223372036854775807 6", "the extent of a part"},
               {" 00000001", "", "checksum"},
               {" 00000001", " 0000001", "checksum"},
               {" 00000001", " 0000000G", "checksum"},
               {" 00000001", " 00000001 00000001", "more, or less"},
               {"part 1 c.npy 136 ffffffff\n", "", "not all parts of \"b/c\""},
               {"part 1 c.npy 136 ffffffff\n", "part 1 c.npy 136 ffffffff\npart 1 d.npy 136 ffffffff\n", "overlap"},
               {"part 1 c.npy 136 ffffffff\n", "part 1 c.npy 136 ffffffff\n\n", "is missing"},
               {"\nstep", "\n\nstep", "\"step\" is missing"}};

static void manifests_made_to_harm_are_refused(void **state)
{
    (void)state;
    char text[4096];
    for (size_t k = 0; k < sizeof hostile / sizeof *hostile; k++) {
        oly_manifest m;
        size_t n = changed(text, sizeof text, hostile[k].from, hostile[k].to);
        char *exact = malloc(n); /* so that reading beyond its end is seen */
        memcpy(exact, text, n);
        oly_status st = oly_manifest_read(exact, n, &m);
        free(exact);
        if (st != OLY_IO || !strstr(oly_pending_message(), hostile[k].reason))
            fail_msg("%s -> %s: %d %s", hostile[k].from, hostile[k].to, (int)st, oly_pending_message());
        oly_drop_message();
    }
}

/* Cut anywhere, and with any byte changed: refused by the checksum at the latest. */
static void damage_is_seen(void **state)
{
    (void)state;
    char text[4096];
    size_t n = changed(text, sizeof text, NULL, NULL);
    for (size_t k = 0; k < n; k++) {
        oly_manifest m;
        assert_int_equal(oly_manifest_read(text, k, &m), OLY_IO);
        oly_drop_message();
        for (int bit = 0; bit < 8; bit++) {
            text[k] = (char)(text[k] ^ 1 << bit);
            assert_int_equal(oly_manifest_read(text, n, &m), OLY_IO);
            oly_drop_message();
            text[k] = (char)(text[k] ^ 1 << bit);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_written_is_read),
                                       cmocka_unit_test(manifests_made_to_harm_are_refused),
                                       cmocka_unit_test(damage_is_seen)};
    return CHECK_MAIN(tests);
}
