/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  The core: errors, sites, scopes, options, text, notations, arenas, fingerprints. */
#include "check.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/handle.h"
#include "core/hash.h"
#include "core/machine.h"
#include "core/option.h"
#include "core/scan.h"
#include "core/scope.h"
#include "core/text.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- errors ------------------------------------------------------------------------------------ */

static void every_status_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(oly_status_name(OLY_OK), "OLY_OK");
    assert_string_equal(oly_status_name(OLY_NO_KERNEL), "OLY_NO_KERNEL");
    assert_string_equal(oly_status_text(OLY_SHAPE), "shapes do not fit");
    assert_string_equal(oly_status_name((oly_status)99), "OLY_UNKNOWN");
    assert_string_equal(oly_version(), "0.1");
}

static int restore_mode(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_ABORT);
    oly_clear_error();
    oly_fail_allocation(-1);
    return 0;
}

/* As if the program had made the call there. */
static oly_entry enter(const char *file, int line, const char *written, const char *function)
{
    oly_at(file, line, written, function);
    return oly_enter(function);
}

static void the_first_message_is_kept(void **state)
{
    (void)state;
    assert_int_equal(oly_set_error_mode(OLY_ERRORS_RETURN), OLY_ERRORS_ABORT);
    assert_string_equal(oly_last_error(), "");
    enter("heat.c", 41, "oly_add", "oly_add_with");
    assert_int_equal(oly_fail(OLY_SHAPE, "sizes %d and %d", 4, 5), OLY_SHAPE);
    assert_int_equal(oly_fail(OLY_INVALID, "later"), OLY_INVALID);
    assert_string_equal(oly_pending_message(), "sizes 4 and 5");
    assert_int_equal(oly_raise(OLY_SHAPE), OLY_SHAPE);
    assert_string_equal(oly_pending_message(), "");
    assert_true(oly_error_unseen());
    oly_fail(OLY_DTYPE, "second");
    oly_raise(OLY_DTYPE);
    assert_int_equal(oly_last_status(), OLY_SHAPE);
    assert_string_equal(oly_last_error(), "oly_add (heat.c:41): sizes 4 and 5 [OLY_SHAPE: shapes do not fit]");
    assert_false(oly_error_unseen());
    oly_clear_error();
    assert_int_equal(oly_last_status(), OLY_OK);
    assert_int_equal(oly_raise(OLY_OK), OLY_OK);
    assert_string_equal(oly_last_error(), "");
}

/* Each call of a nested expression is recorded before the calls in its arguments, and starts after they have ended. */
static void deep_expressions_keep_their_outermost_call(void **state)
{
    enum { DEPTH = 40 };
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_at("deep.c", 7, "oly_prod", "oly_prod_with");
    for (int k = 0; k < DEPTH; k++)
        oly_at("deep.c", 8, "oly_neg", "oly_neg");
    for (int k = 0; k < DEPTH; k++) {
        oly_entry inner = oly_enter("oly_neg");
        oly_leave(&inner);
    }
    oly_entry outer = oly_enter("oly_prod_with");
    oly_raise(oly_fail(OLY_STATE, "no"));
    oly_leave(&outer);
    assert_string_equal(oly_last_error(), "oly_prod (deep.c:7): no [OLY_STATE: called at the wrong time]");
    oly_clear_error();
}

static void messages_show_the_name_the_user_wrote(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    enter("a.c", 1, "oly_sum", "oly_sum_with");
    oly_raise(oly_fail(OLY_STATE, "no"));
    assert_string_equal(oly_last_error(), "oly_sum (a.c:1): no [OLY_STATE: called at the wrong time]");
    oly_clear_error();
    oly_entry entry = enter("a.c", 2, "oly_zeros_like", "oly_full_like_of");
    oly_entry within = oly_enter("oly_full_sharded"); /* called by the library: not recorded */
    oly_raise(oly_fail(OLY_STATE, "no"));
    assert_memory_equal(oly_last_error(), "oly_zeros_like (a.c:2): ", 24);
    oly_clear_error();
    oly_leave(&within);
    oly_leave(&entry);
}

static void a_call_without_a_note_has_a_name(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_restore_site((oly_site){0}); /* earlier tests did not leave */
    oly_entry entry = oly_enter("oly_add");
    oly_raise(oly_fail(OLY_STATE, "no"));
    assert_string_equal(oly_last_error(), "oly_add: no [OLY_STATE: called at the wrong time]");
    oly_clear_error();
    oly_leave(&entry);
}

static void calls_outside_of_init_and_finalize_are_errors(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    int life = atomic_exchange(&oly_life, OLY_BEFORE_INIT);
    oly_scope_open();
    assert_int_equal(oly_last_status(), OLY_STATE);
    assert_non_null(strstr(oly_last_error(), "oly_scope_open (tests/unit/test_core.c:"));
    assert_non_null(strstr(oly_last_error(), "call oly_init first"));
    oly_clear_error();
    atomic_store(&oly_life, OLY_AFTER_FINALIZE);
    oly_scope_open();
    assert_non_null(strstr(oly_last_error(), "after oly_finalize"));
    oly_clear_error();
    atomic_store(&oly_life, life);
}

static void handles_are_told_by_their_tags(void **state)
{
    struct {
        oly_tag tag;
        int more;
    } mesh = {OLY_TAG(OLY_HANDLE_MESH), 0}, dead = {OLY_DEAD_TAG(OLY_HANDLE_MESH), 0};
    _Alignas(8) char text[] = "abc", near_tag[] = "\003Oly";
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    assert_true(oly_lives(&mesh, OLY_HANDLE_MESH) && oly_lives_there(&mesh, OLY_HANDLE_MESH));
    assert_false(oly_lives(&mesh, OLY_HANDLE_ARRAY) || oly_lives(&dead, OLY_HANDLE_MESH) ||
                 oly_lives(NULL, OLY_HANDLE_MESH));
    assert_false(oly_lives_there(text, OLY_HANDLE_MESH) || oly_lives_there(near_tag, OLY_HANDLE_MESH));
    assert_false(oly_lives_there((void *)7, OLY_HANDLE_MESH) || oly_lives_there(NULL, OLY_HANDLE_MESH));
    assert_int_equal(oly_wrong_handle(&mesh, OLY_HANDLE_ARRAY), OLY_INVALID);
    assert_string_equal(oly_pending_message(), "an array is expected, a mesh was given");
    oly_drop_message();
    assert_int_equal(oly_wrong_handle(&dead, OLY_HANDLE_MESH), OLY_DELETED);
    oly_drop_message();
    assert_int_equal(oly_wrong_handle(text, OLY_HANDLE_MESH), OLY_INVALID);
    oly_drop_message();
    assert_int_equal(oly_need_or_null(NULL, OLY_HANDLE_MESH), OLY_OK);
    assert_int_equal(oly_need(NULL, OLY_HANDLE_MESH), OLY_INVALID);
    oly_clear_error();
}

static int inner(int x)
{
    OLY_ENTER_ANY_TIME();
    return x + 1;
}

static oly_site outer_site;
static void outer(int x, int y)
{
    (void)x, (void)y;
    OLY_ENTER_ANY_TIME();
    outer_site = oly_current_site();
}

static void a_call_finds_its_line_after_its_arguments(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) { /* often: records must not pile up */
        int line = __LINE__ + 1;
        OLY_AT(outer)(OLY_AT(inner)(i), OLY_AT(inner)(OLY_AT(inner)(2)));
        assert_string_equal(outer_site.call, "outer");
        assert_int_equal(outer_site.line, line);
    }
    oly_at("b.c", 7, "outer", "outer");
    oly_at("b.c", 8, "outer", "outer"); /* an argument that calls the same function */
    outer(1, 2);
    assert_int_equal(outer_site.line, 8);
    outer(1, 2);
    assert_int_equal(outer_site.line, 7);
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    char *huge = malloc(10001);
    memset(huge, 'x', 10000);
    huge[10000] = 0;
    oly_fail(OLY_INVALID, "%s", huge);
    size_t length = strlen(oly_pending_message());
    assert_in_range(length, 1000, 9000);
    assert_string_equal(oly_pending_message() + length - 3, "...");
    oly_drop_message();
    free(huge);
}

static void *fail_elsewhere(void *unused)
{
    oly_fail(OLY_IO, "on another thread");
    return unused;
}

static void messages_belong_to_their_thread(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(oly_pending_message(), "");
}

/* Runs `child` in a process of its own; returns its exit status and what it wrote on stderr. */
static int in_child(void (*child)(void), char *output, size_t size)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(pipes[1], STDERR_FILENO);
        child();
        _exit(0);
    }
    close(pipes[1]);
    size_t n = 0;
    ssize_t got;
    while (n + 1 < size && (got = read(pipes[0], output + n, size - 1 - n)) > 0)
        n += (size_t)got;
    output[n] = 0;
    close(pipes[0]);
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void leave_with_17(int status)
{
    _exit(16 + status);
}

static void raise_on_rank_2(void)
{
    oly_abort_hook = leave_with_17;
    oly_error_set_rank(2, 4);
    enter("heat.c", 41, "oly_add", "oly_add_with");
    oly_raise(oly_fail(OLY_SHAPE, "sizes differ"));
}

static void raise_alone(void)
{
    oly_abort_hook = leave_with_17;
    oly_error_set_rank(0, 1);
    enter("heat.c", 41, "oly_add", "oly_add_with");
    oly_raise(oly_fail(OLY_SHAPE, "sizes differ"));
}

static void an_error_ends_the_job(void **state)
{
    char text[1024];
    (void)state;
    assert_int_equal(in_child(raise_on_rank_2, text, sizeof text), 17);
    assert_string_equal(text, "olympus: rank 2: oly_add (heat.c:41): sizes differ [OLY_SHAPE: shapes do not fit]\n");
    assert_int_equal(in_child(raise_alone, text, sizeof text), 17);
    assert_string_equal(text, "olympus: oly_add (heat.c:41): sizes differ [OLY_SHAPE: shapes do not fit]\n");
}

static void allocations_fail_when_told(void **state)
{
    (void)state;
    oly_fail_allocation(1);
    void *first = oly_malloc(8);
    assert_non_null(first);
    assert_null(oly_realloc(first, 16));
    first = oly_realloc(first, 16);
    assert_non_null(first);
    oly_release(first);
    assert_null(oly_calloc(SIZE_MAX / 2, 3));
    oly_release(NULL);
    assert_int_equal(oly_out_of_memory(3 << 20, "a plan"), OLY_MEMORY);
    assert_string_equal(oly_pending_message(), "no memory for 3.0 MiB of a plan");
}

/* -- scopes ------------------------------------------------------------------------------------ */

static int destroyed[8], n_destroyed;
typedef struct thing {
    oly_owned owned;
    int name;
} thing;

static void destroy_thing(oly_owned *object)
{
    destroyed[n_destroyed++] = ((thing *)object)->name;
}

static int no_scopes(void **state)
{
    n_destroyed = 0;
    oly_scope_close_all();
    return restore_mode(state);
}

static void a_scope_frees_what_it_owns_newest_first(void **state)
{
    thing a = {.name = 1}, b = {.name = 2}, c = {.name = 3}, d = {.name = 4};
    (void)state;
    assert_int_equal(oly_scope_adopt(&a.owned, destroy_thing), OLY_OK);
    OLY_SCOPE
    {
        oly_scope_adopt(&b.owned, destroy_thing);
        oly_scope_adopt(&c.owned, destroy_thing);
        oly_scope_adopt(&d.owned, destroy_thing);
        oly_scope_move(&c.owned, oly_scope_outer(oly_scope_innermost()));
    }
    assert_int_equal(n_destroyed, 2);
    assert_int_equal(destroyed[0], 4);
    assert_int_equal(destroyed[1], 2);
    assert_ptr_equal(c.owned.scope, a.owned.scope);
    assert_ptr_equal(oly_scope_outer(c.owned.scope), c.owned.scope); /* the bottom */
    oly_scope_drop(&a.owned);
    assert_int_equal(destroyed[2], 1);
    oly_scope_close_all();
    assert_int_equal(n_destroyed, 4);
    assert_int_equal(destroyed[3], 3);
    assert_null(oly_scope_innermost());
}

static void an_object_can_be_owned_by_nobody(void **state)
{
    thing a = {.name = 1};
    (void)state;
    oly_scope_open();
    oly_scope_adopt(&a.owned, destroy_thing);
    oly_scope_move(&a.owned, NULL);
    oly_scope_close();
    assert_int_equal(n_destroyed, 0);
    oly_scope_drop(&a.owned);
    assert_int_equal(n_destroyed, 1);
}

static void surplus_closes_are_errors(void **state)
{
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_scope_close();
    assert_int_equal(oly_last_status(), OLY_STATE);
    oly_clear_error();
    oly_scope_open();
    oly_scope_close();
    assert_int_equal(oly_last_status(), OLY_OK);
    oly_scope_close();
    assert_int_equal(oly_last_status(), OLY_STATE);
}

static void a_scope_without_memory_leaves_the_outer_one_open(void **state)
{
    thing a = {.name = 1};
    (void)state;
    oly_set_error_mode(OLY_ERRORS_RETURN);
    oly_scope_open();
    oly_scope_adopt(&a.owned, destroy_thing);
    oly_fail_allocation(0);
    oly_scope_open();
    assert_int_equal(oly_last_status(), OLY_MEMORY);
    oly_scope_close();
    assert_int_equal(n_destroyed, 0);
    oly_scope_close();
    assert_int_equal(n_destroyed, 1);
}

static void *own_thing(void *object)
{
    oly_scope_open();
    oly_scope_adopt(object, destroy_thing);
    return NULL;
}

static void closing_all_reaches_other_threads(void **state)
{
    thing a = {.name = 5};
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, own_thing, &a.owned), 0);
    pthread_join(thread, NULL);
    assert_int_equal(n_destroyed, 0);
    oly_scope_close_all();
    assert_int_equal(n_destroyed, 1);
}

/* -- options ----------------------------------------------------------------------------------- */

static int no_options(void **state)
{
    unsetenv("OLYMPUS_NUM_CPU_DEVICES");
    unsetenv("OLYMPUS_PLATFORMS");
    unsetenv("OLYMPUS_ISA");
    return restore_mode(state);
}

static void options_come_from_the_environment(void **state)
{
    (void)state;
    assert_int_equal(oly_options_read(), OLY_OK);
    assert_int_equal(oly_option.num_cpu_devices, 1);
    assert_string_equal(oly_option.platforms, "cuda,cpu");
    uint64_t before = oly_options_fingerprint();
    setenv("OLYMPUS_NUM_CPU_DEVICES", "7", 1);
    setenv("OLYMPUS_ISA", "avx2", 1);
    assert_int_equal(oly_options_read(), OLY_OK);
    assert_int_equal(oly_option.num_cpu_devices, 7);
    assert_string_equal(oly_option.isa, "avx2");
    assert_true(oly_options_fingerprint() != before);
}

static void numbers_are_read_strictly(void **state)
{
    static const char *const bad[] = {"", "x", "4x", " 4", "4 ", "0x4", "-", "0", "65537", "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("OLYMPUS_NUM_CPU_DEVICES", bad[i], 1);
        assert_int_equal(oly_options_read(), OLY_INVALID);
        assert_non_null(strstr(oly_pending_message(), "OLYMPUS_NUM_CPU_DEVICES"));
        assert_non_null(strstr(oly_pending_message(), bad[i]));
        assert_non_null(strstr(oly_pending_message(), "65536"));
        oly_drop_message();
    }
    setenv("OLYMPUS_NUM_CPU_DEVICES", "+65536", 1);
    assert_int_equal(oly_options_read(), OLY_OK);
    char long_text[2 * sizeof oly_option.isa];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    setenv("OLYMPUS_ISA", long_text, 1);
    assert_int_equal(oly_options_read(), OLY_INVALID);
}

static void platforms_are_a_list_of_priorities(void **state)
{
    static const struct {
        const char *given, *left, *named;
    } cases[] = {
        {"cpu", "cpu", NULL},     {"cuda,cpu", "cuda,cpu", NULL}, {" gpu , cpu ", "cuda,cpu", NULL},
        {"cpu,tpu", "cpu", NULL}, {"foo,cpu", NULL, "\"foo\""},   {"tpu", NULL, "\"tpu\""},
        {"", NULL, "\"\""},       {"cpu,", NULL, "\"\""},         {"cpu cuda", NULL, "commas"},
        {"CPU", NULL, "\"CPU\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("OLYMPUS_PLATFORMS", cases[i].given, 1);
        oly_status status = oly_options_read();
        assert_int_equal(status, cases[i].left ? OLY_OK : OLY_INVALID);
        if (cases[i].left)
            assert_string_equal(oly_option.platforms, cases[i].left);
        else
            assert_non_null(strstr(oly_pending_message(), cases[i].named));
        oly_drop_message();
    }
}

static void report_twice(void)
{
    oly_options_report_unknown();
    oly_options_report_unknown();
}

static void report_on_rank_1(void)
{
    oly_error_set_rank(1, 2);
    oly_options_report_unknown();
}

/* In child processes, as it is reported once per process; before any other test does. */
static void unknown_names_are_reported_once(void **state)
{
    char text[1024];
    (void)state;
    setenv("OLYMPUS_NUM_CPU_DEVICE", "4", 1);
    assert_int_equal(in_child(report_twice, text, sizeof text), 0);
    assert_string_equal(text, "olympus: unknown option OLYMPUS_NUM_CPU_DEVICE ignored; did you mean "
                              "OLYMPUS_NUM_CPU_DEVICES?\n");
    in_child(report_on_rank_1, text, sizeof text);
    assert_string_equal(text, "");
    unsetenv("OLYMPUS_NUM_CPU_DEVICE");
    setenv("OLYMPUS_TIMOUT", "4", 1);
    in_child(report_twice, text, sizeof text);
    assert_non_null(strstr(text, "did you mean OLYMPUS_TIMEOUT?"));
    unsetenv("OLYMPUS_TIMOUT");
}

/* -- text and notations ------------------------------------------------------------------------ */

static void text_grows(void **state)
{
    oly_text text = {0};
    char small[4];
    (void)state;
    assert_string_equal(oly_text_chars(&text), "");
    for (int i = 0; i < 1000; i++)
        oly_text_add(&text, "%d,", i % 10);
    oly_text_repeat(&text, "ab", 3);
    assert_int_equal(text.length, 2006);
    assert_string_equal(text.chars + 1998, "9,ababab");
    assert_int_equal(oly_text_take(&text, small, sizeof small), 2006);
    assert_string_equal(small, "0,1");
    assert_null(text.chars);
    assert_int_equal(oly_text_take(&text, NULL, 0), 0);
}

static void text_without_memory_keeps_what_it_has(void **state)
{
    oly_text text = {0};
    char buffer[64];
    (void)state;
    oly_text_add(&text, "kept");
    oly_fail_allocation(0);
    oly_text_add(&text, "%200d", 1);
    oly_text_add(&text, "more");
    assert_true(text.failed);
    assert_string_equal(oly_text_chars(&text), "kept");
    assert_int_equal(oly_text_take(&text, buffer, sizeof buffer), -1);
    assert_string_equal(buffer, "kept");
}

static void sizes_have_units(void **state)
{
    (void)state;
    assert_string_equal(oly_size_text_of(0).chars, "0 bytes");
    assert_string_equal(oly_size_text_of(1023).chars, "1023 bytes");
    assert_string_equal(oly_size_text_of(1536).chars, "1.5 KiB");
    assert_string_equal(oly_size_text_of((1 << 20) - 1).chars, "1.0 MiB");
    assert_string_equal(oly_size_text_of((size_t)64 << 20).chars, "64.0 MiB");
    assert_string_equal(oly_size_text_of(SIZE_MAX).chars, "16.0 EiB");
}

static void tokens_are_read_one_by_one(void **state)
{
    oly_scanner s = oly_scan_begin("  ab_1=-9223372036854775808 ,+7  ");
    char word[8], tiny[4];
    int64_t value;
    (void)state;
    assert_false(oly_scan_word(&s, tiny, sizeof tiny)); /* too long, and not consumed */
    assert_true(oly_scan_word(&s, word, sizeof word));
    assert_string_equal(word, "ab_1");
    assert_false(oly_scan_take(&s, ','));
    assert_true(oly_scan_take(&s, '='));
    assert_true(oly_scan_integer(&s, &value));
    assert_true(value == INT64_MIN);
    assert_int_equal(oly_scan_peek(&s), ',');
    assert_true(oly_scan_take(&s, ','));
    assert_false(oly_scan_end(&s));
    assert_true(oly_scan_integer(&s, &value));
    assert_int_equal(value, 7);
    assert_true(oly_scan_end(&s));
    assert_false(oly_scan_take(&s, 0));
    s = oly_scan_begin("9223372036854775808");
    assert_false(oly_scan_integer(&s, &value));
    s = oly_scan_begin("1a");
    assert_false(oly_scan_word(&s, word, sizeof word));
    s = oly_scan_begin("-x");
    assert_false(oly_scan_integer(&s, &value));
    assert_int_equal(oly_scan_column(&s), 1);
}

static void messages_name_the_column(void **state)
{
    oly_scanner s = oly_scan_begin("i=4, =2");
    char word[8];
    int64_t value;
    (void)state;
    oly_scan_word(&s, word, sizeof word);
    oly_scan_take(&s, '=');
    oly_scan_integer(&s, &value);
    oly_scan_take(&s, ',');
    assert_int_equal(oly_scan_column(&s), 6);
    assert_int_equal(oly_scan_expected(&s, "an axis name"), OLY_PARSE);
    assert_string_equal(oly_pending_message(), "expected an axis name at column 6 of \"i=4, =2\", before \"=2\"");
    oly_drop_message();
    s = oly_scan_begin("i ");
    oly_scan_word(&s, word, sizeof word);
    oly_scan_expected(&s, "'='");
    assert_string_equal(oly_pending_message(), "expected '=' at the end (column 3) of \"i \"");
    oly_drop_message();
}

/* -- arenas, fingerprints, the machine --------------------------------------------------------- */

static void allocations_are_aligned_cleared_and_disjoint(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 5000, 100003, 3, 2000003, 17};
    oly_arena arena = {0};
    char *pieces[sizeof sizes / sizeof *sizes];
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pieces[i] = oly_arena_take(&arena, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % (sizes[i] < 64 ? 16 : 64), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], 0);
        memset(pieces[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizes[i]; k += 61)
            assert_int_equal(pieces[i][k], i + 1);
    assert_true(arena.total >= 2110000);
    assert_null(oly_arena_take(&arena, SIZE_MAX - 3));
    oly_fail_allocation(0);
    assert_null(oly_arena_take(&arena, (size_t)10 << 20));
    assert_non_null(oly_arena_take(&arena, 8));
    oly_arena_free(&arena);
    assert_null(arena.block);
    assert_int_equal(arena.total, 0);
}

static void fingerprints_tell_memory_apart(void **state)
{
    unsigned char bytes[40] = {0};
    (void)state;
    assert_true(oly_hash(1, bytes, 0) != oly_hash(2, bytes, 0));
    for (size_t n = 0; n < sizeof bytes; n++) {
        uint64_t h = oly_hash(7, bytes, n);
        assert_true(h == oly_hash(7, bytes, n));
        assert_true(h != oly_hash(7, bytes, n + 1)); /* one more zero changes the hash */
        for (size_t k = 0; k < n; k++) {
            bytes[k] ^= 0x80;
            assert_true(h != oly_hash(7, bytes, n));
            bytes[k] ^= 0x80;
        }
    }
    assert_true(oly_hash_text(0, "ab") != oly_hash_text(0, "ba"));
}

static void the_machine_has_cores_and_caches(void **state)
{
    (void)state;
    const oly_machine *m = oly_machine_get();
    assert_in_range(m->cores, 1, sysconf(_SC_NPROCESSORS_CONF));
    assert_in_range(m->l1_bytes, 8 << 10, 1 << 20);
    assert_true(m->l2_bytes >= m->l1_bytes);
    assert_ptr_equal(oly_machine_get(), m);
    oly_machine_forget();
    assert_in_range(oly_machine_get()->cores, 1, sysconf(_SC_NPROCESSORS_CONF));
}

/* The line number is never cut off, nor the file's name while there is room for it. */
static void places_keep_the_end_of_their_path(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *text;
    } expected[] = {{60, "oly_sum (/home/me/waves/run_17/heat.c:1234)"},
                    {44, "oly_sum (/home/me/waves/run_17/heat.c:1234)"},
                    {43, "oly_sum (.../me/waves/run_17/heat.c:1234)"},
                    {40, "oly_sum (.../waves/run_17/heat.c:1234)"},
                    {30, "oly_sum (.../heat.c:1234)"},
                    {25, "oly_sum (...heat.c:1234)"},
                    {24, "oly_sum (...eat.c:1234)"}};
    oly_site site = {.call = "oly_sum", .file = "/home/me/waves/run_17/heat.c", .line = 1234};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        char text[64];
        memset(text, 'x', sizeof text);
        oly_site_text(&site, text, expected[k].size);
        assert_true(strlen(text) < expected[k].size && text[expected[k].size] == 'x');
        assert_string_equal(text, expected[k].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_text),
        cmocka_unit_test_setup_teardown(unknown_names_are_reported_once, no_options, no_options),
        cmocka_unit_test_teardown(the_first_message_is_kept, restore_mode),
        cmocka_unit_test_teardown(messages_show_the_name_the_user_wrote, restore_mode),
        cmocka_unit_test_teardown(deep_expressions_keep_their_outermost_call, restore_mode),
        cmocka_unit_test_teardown(a_call_without_a_note_has_a_name, restore_mode),
        cmocka_unit_test_teardown(calls_outside_of_init_and_finalize_are_errors, restore_mode),
        cmocka_unit_test_teardown(handles_are_told_by_their_tags, restore_mode),
        cmocka_unit_test(a_call_finds_its_line_after_its_arguments),
        cmocka_unit_test_teardown(long_messages_are_cut, restore_mode),
        cmocka_unit_test_teardown(messages_belong_to_their_thread, restore_mode),
        cmocka_unit_test(an_error_ends_the_job),
        cmocka_unit_test_teardown(allocations_fail_when_told, restore_mode),
        cmocka_unit_test_setup_teardown(a_scope_frees_what_it_owns_newest_first, no_scopes, no_scopes),
        cmocka_unit_test_setup_teardown(an_object_can_be_owned_by_nobody, no_scopes, no_scopes),
        cmocka_unit_test_setup_teardown(surplus_closes_are_errors, no_scopes, no_scopes),
        cmocka_unit_test_setup_teardown(a_scope_without_memory_leaves_the_outer_one_open, no_scopes, no_scopes),
        cmocka_unit_test_setup_teardown(closing_all_reaches_other_threads, no_scopes, no_scopes),
        cmocka_unit_test_setup_teardown(options_come_from_the_environment, no_options, no_options),
        cmocka_unit_test_setup_teardown(numbers_are_read_strictly, no_options, no_options),
        cmocka_unit_test_setup_teardown(platforms_are_a_list_of_priorities, no_options, no_options),
        cmocka_unit_test(text_grows),
        cmocka_unit_test_teardown(text_without_memory_keeps_what_it_has, restore_mode),
        cmocka_unit_test(sizes_have_units),
        cmocka_unit_test(tokens_are_read_one_by_one),
        cmocka_unit_test(messages_name_the_column),
        cmocka_unit_test_teardown(allocations_are_aligned_cleared_and_disjoint, restore_mode),
        cmocka_unit_test(fingerprints_tell_memory_apart),
        cmocka_unit_test(the_machine_has_cores_and_caches),
        cmocka_unit_test(places_keep_the_end_of_their_path),
    };
    return CHECK_MAIN(tests);
}
