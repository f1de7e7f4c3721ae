/* SPDX-License-Identifier: BSD-3-Clause */
/* run: ranks=1.  A platform's table, as the layers above use it: a memory for each device, and copies for the host. */
#include "check.h"
#include "core/error.h"
#include "device/memory.h"
#include "plan/cost/cost.h"
#include "platform_protected.h"
#include <sys/wait.h>
#include <unistd.h>

static struct {
    int n_devices, reads, writes, allocated;
    oly_status fails; /* reading and writing, unless OLY_OK */
} own;

static int devices(void)
{
    return own.n_devices;
}

static bool allocate(int memory, size_t bytes, void **data)
{
    own.allocated++;
    return oly_platform_cpu.allocate(memory, bytes, data);
}

static void release(int memory, void *data, size_t bytes)
{
    own.allocated--;
    oly_platform_cpu.release(memory, data, bytes);
}

static oly_status read_bytes(void *host, int memory, const void *from, size_t bytes)
{
    own.reads++;
    return own.fails == OLY_OK ? oly_platform_cpu.read(host, memory, from, bytes) : oly_fail(own.fails, "no reading");
}

static oly_status write_bytes(int memory, void *to, const void *host, size_t bytes)
{
    own.writes++;
    return own.fails == OLY_OK ? oly_platform_cpu.write(memory, to, host, bytes) : oly_fail(own.fails, "no writing");
}

static oly_status copy(int to_memory, void *to, int from_memory, const void *from, size_t bytes)
{
    return oly_platform_cpu.copy(to_memory, to, from_memory, from, bytes);
}

static const oly_platform apart = {.name = "apart",
                                   .device_name = "apart",
                                   .computes = true,
                                   .devices = devices,
                                   .allocate = allocate,
                                   .release = release,
                                   .read = read_bytes,
                                   .write = write_bytes,
                                   .copy = copy};

static int choose(void **state)
{
    (void)state;
    own.n_devices = 4;
    own.reads = own.writes = own.allocated = 0;
    own.fails = OLY_OK;
    oly_platform_register(&apart);
    return oly_platform_choose(false) != OLY_OK;
}

static int forget(void **state)
{
    (void)state;
    oly_drop_message();
    oly_pool_stop();
    oly_platform_register(NULL);
    oly_platform_forget();
    return own.allocated != 0;
}

static void a_buffer_stays_in_its_memory(void **state)
{
    (void)state;
    oly_buffer *b = oly_buffer_take(1, 1000);
    oly_buffer_drop(b);
    oly_buffer *other = oly_buffer_take(0, 1000), *same = oly_buffer_take(1, 1000);
    assert_ptr_not_equal(other, b);
    assert_ptr_equal(same, b);
    assert_int_equal(other->memory, 0);
    assert_int_equal(same->memory, 1);
    oly_buffer_drop(other);
    oly_buffer_drop(same);
}

static void the_host_gets_a_copy(void **state)
{
    int64_t seven = 7, got = 0;
    void *host;
    (void)state;
    oly_buffer *b = oly_buffer_take(0, sizeof seven), *c = oly_buffer_take(1, sizeof seven);
    assert_int_equal(oly_buffer_map(b, OLY_ACCESS_WRITE, sizeof seven, &host), OLY_OK);
    assert_ptr_not_equal(host, b->data);
    memcpy(host, &seven, sizeof seven);
    assert_int_equal(own.writes, 0);
    assert_int_equal(oly_buffer_unmap(b, OLY_ACCESS_WRITE, sizeof seven, host), OLY_OK);
    assert_int_equal(own.writes, 1);
    assert_int_equal(own.reads, 0);
    assert_int_equal(oly_buffer_copy(c, b, sizeof seven), OLY_OK);
    assert_int_equal(oly_buffer_map(c, OLY_ACCESS_READ, sizeof seven, &host), OLY_OK);
    assert_memory_equal(host, &seven, sizeof seven);
    assert_int_equal(oly_buffer_unmap(c, OLY_ACCESS_READ, sizeof seven, host), OLY_OK);
    assert_int_equal(own.writes, 1);
    assert_int_equal(oly_buffer_read(c, sizeof got, &got), OLY_OK);
    assert_int_equal(got, 7);
    oly_buffer_drop(b);
    oly_buffer_drop(c);
}

static void what_the_device_refuses_is_told(void **state)
{
    int64_t number = 0;
    void *host;
    (void)state;
    oly_buffer *b = oly_buffer_take(0, sizeof number);
    own.fails = OLY_STATE;
    assert_int_equal(oly_buffer_read(b, sizeof number, &number), OLY_STATE);
    assert_int_equal(oly_buffer_write(b, sizeof number, &number), OLY_STATE);
    assert_int_equal(oly_buffer_map(b, OLY_ACCESS_READ, sizeof number, &host), OLY_STATE);
    assert_int_equal(oly_buffer_map(b, OLY_ACCESS_WRITE, sizeof number, &host), OLY_OK);
    memset(host, 0, sizeof number);
    assert_int_equal(oly_buffer_unmap(b, OLY_ACCESS_WRITE, sizeof number, host), OLY_STATE);
    oly_fail_allocation(0);
    assert_int_equal(oly_buffer_map(b, OLY_ACCESS_READ, sizeof number, &host), OLY_MEMORY);
    oly_buffer_drop(b);
}

static void a_cpu_maps_the_memory_itself(void **state)
{
    void *host;
    (void)state;
    oly_buffer *b = oly_buffer_take(0, 100);
    assert_int_equal(oly_buffer_map(b, OLY_ACCESS_WRITE, 100, &host), OLY_OK);
    assert_ptr_equal(host, b->data);
    assert_int_equal(oly_buffer_unmap(b, OLY_ACCESS_WRITE, 100, host), OLY_OK);
    oly_buffer_drop(b);
    oly_pool_stop();
}

static void too_many_memories_are_refused(void **state)
{
    (void)state;
    own.n_devices = OLY_MOST_APART + 1;
    oly_platform_forget();
    assert_int_equal(oly_platform_choose(false), OLY_INVALID);
    assert_non_null(
        strstr(oly_pending_message(), "platform apart has 17 devices with a memory each; a process has at most 16"));
    assert_ptr_equal(oly_platform_get(), &oly_platform_cpu);
}

static void too_many_late_devices_are_refused(void **state)
{
    oly_platform late = platform_protected;
    (void)state;
    late.name = "late";
    late.one_memory = true;
    late.devices = devices;
    own.n_devices = OLY_MOST_LATE_DEVICES;
    oly_platform_register(&late);
    assert_int_equal(oly_platform_choose(false), OLY_OK);
    assert_true(oly_platform_is_late());
    oly_platform_forget();
    assert_false(oly_platform_is_late());
    own.n_devices++;
    assert_int_equal(oly_platform_choose(false), OLY_INVALID);
    assert_non_null(
        strstr(oly_pending_message(), "platform late has 65 devices that compute late; a process has at most 64"));
}

static const oly_facts *fast(void)
{
    static const oly_facts facts = {.memory = 2e12,
                                    .gemm = 4e13,
                                    .operations = 1e12,
                                    .copy_latency = 5e-6,
                                    .copy_bandwidth = 3e11,
                                    .tile_bytes = 100000,
                                    .stencil_steps = 4};
    return &facts;
}

static void facts_are_the_platform_s(void **state)
{
    oly_platform other = apart;
    oly_facts of_cpu = *oly_facts_now();
    (void)state;
    of_cpu.one_memory = 1; /* not here: each device has a memory */
    assert_true(oly_rates_fixed().memory == of_cpu.memory);
    other.facts = fast;
    oly_platform_register(&other);
    assert_int_equal(oly_platform_choose(false), OLY_OK);
    oly_rates rates = oly_rates_fixed();
    assert_true(rates.memory == 2e12 && rates.gemm == 4e13 && rates.operations == 1e12);
    assert_true(rates.link[OLY_LEVEL_PROCESS].latency == 5e-6 && rates.link[OLY_LEVEL_PROCESS].bandwidth == 3e11);
    assert_int_equal(oly_facts_now()->tile_bytes, 100000);
    oly_platform_forget();
    assert_memory_equal(oly_facts_now(), &of_cpu, sizeof of_cpu);
}

/* They decide plans. */
static void ranks_have_one_set_of_facts(void **state)
{
    oly_platform_name of[2] = {oly_platform_my_name(), oly_platform_my_name()};
    (void)state;
    of[1].facts.tile_bytes /= 2;
    assert_int_equal(oly_platform_agree(2, of, sizeof *of), OLY_DIVERGED);
    assert_non_null(strstr(oly_pending_message(),
                           "of ranks 0 and 1 are of platform \"apart\", but its rates or cache sizes differ"));
}

static void ranks_have_one_platform(void **state)
{
    struct {
        int before;
        oly_platform_name name;
    } of[3] = {{0, oly_platform_my_name()}, {0, oly_platform_my_name()}, {0, {.chars = "cpu"}}};
    (void)state;
    assert_int_equal(oly_platform_agree(2, &of[0].name, sizeof *of), OLY_OK);
    assert_int_equal(oly_platform_agree(3, &of[0].name, sizeof *of), OLY_DIVERGED);
    assert_non_null(strstr(oly_pending_message(), "of rank 0 are of platform \"apart\", those of rank 2 of \"cpu\""));
}

/* In a child: the message when the host accesses a buffer that is not mapped. */
static void touch(int out)
{
    dup2(out, STDERR_FILENO);
    oly_platform_register(&platform_protected);
    if (oly_platform_choose(false) != OLY_OK)
        _exit(1);
    oly_buffer *b = oly_buffer_take(0, 100);
    ((volatile char *)b->data)[12] = 1;
    _exit(1);
}

static void touching_a_protected_buffer_names_it(void **state)
{
    int ends[2], status;
    char text[1000];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0)
        touch(ends[1]);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(n > 0);
    text[n] = 0;
    assert_non_null(strstr(text, "byte 12 of buffer 0 (128 bytes in memory 0) is used outside of work on that memory"));
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
}

int main(void)
{
#define WITH_IT(test) cmocka_unit_test_setup_teardown(test, choose, forget)
    const struct CMUnitTest tests[] = {
        WITH_IT(a_buffer_stays_in_its_memory),    WITH_IT(the_host_gets_a_copy),
        WITH_IT(what_the_device_refuses_is_told), cmocka_unit_test(a_cpu_maps_the_memory_itself),
        WITH_IT(too_many_memories_are_refused),   WITH_IT(too_many_late_devices_are_refused),
        WITH_IT(facts_are_the_platform_s),        WITH_IT(ranks_have_one_set_of_facts),
        WITH_IT(ranks_have_one_platform),         cmocka_unit_test(touching_a_protected_buffer_names_it),
    };
    return CHECK_MAIN(tests);
}
