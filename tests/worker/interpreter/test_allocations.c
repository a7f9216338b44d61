/* test_allocations.c - in a step our own code allocates nothing.
 *
 * This program defines the allocator's entry points itself: they count, while a measurement is
 * on, who called, and pass on to the C library. Our code is all in this executable; whoever
 * calls from outside it is a library, counted apart and shown. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"
#include "worker/checkpoint/saver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_STEP 2
#define STEPS 6
#define CALLS_MAX 64

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);
extern const char __executable_start, etext;

static bool counting; /* this and the counts only by atomic access while ranks run */
static int own_calls, library_calls;
static struct call {
    const char *function;
    const void *address; /* of the caller */
} own[CALLS_MAX], libraries[CALLS_MAX];

static bool own_only;     /* count one thread's calls: */
static pthread_t counted; /* this one's */

static void count(const char *function, const void *caller)
{
    if (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE) ||
        (own_only && !pthread_equal(counted, pthread_self())))
        return;
    bool ours = (const char *)caller >= &__executable_start && (const char *)caller < &etext;
    int index = __atomic_fetch_add(ours ? &own_calls : &library_calls, 1, __ATOMIC_RELAXED);
    if (index < CALLS_MAX) {
        (ours ? own : libraries)[index].function = function;
        (ours ? own : libraries)[index].address = caller;
    }
}

#define COUNT(function) count(function, __builtin_extract_return_addr(__builtin_return_address(0)))

void *malloc(size_t size)
{
    COUNT("malloc");
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    COUNT("calloc");
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size)
{
    COUNT("realloc");
    return __libc_realloc(block, size);
}

void free(void *block)
{
    if (block)
        COUNT("free");
    __libc_free(block);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    COUNT("aligned_alloc");
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    COUNT("posix_memalign");
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    COUNT("mmap");
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

/* ---- measuring ---- */

static pthread_barrier_t barrier;

/* All ranks stand still while counting begins and ends. */
static void before_step(void *context, int rank, int step)
{
    (void)context;
    if (step != FIRST_STEP && step != STEPS)
        return;
    pthread_barrier_wait(&barrier);
    if (rank == 0)
        __atomic_store_n(&counting, step == FIRST_STEP, __ATOMIC_RELEASE);
    pthread_barrier_wait(&barrier);
}

static Dl_info origin(const struct call *call)
{
    Dl_info info = {0};
    dladdr(call->address, &info);
    return info;
}

static bool is_same(const struct call *a, const struct call *b)
{
    const char *first = origin(a).dli_fname, *second = origin(b).dli_fname;
    return strcmp(a->function, b->function) == 0 && first && second && strcmp(first, second) == 0;
}

/* One line for each function and module. */
static void show(const char *what, const struct call *calls, int total)
{
    int count = total < CALLS_MAX ? total : CALLS_MAX;
    for (int i = 0; i < count; i++) {
        int same = 0, before = 0;
        for (int j = 0; j < count; j++) {
            same += is_same(&calls[i], &calls[j]);
            before += j < i && is_same(&calls[i], &calls[j]);
        }
        Dl_info info = origin(&calls[i]);
        if (before == 0)
            printf("%s: %d calls, of the first %d %d are %s from %s\n", what, total, count, same,
                   calls[i].function, info.dli_fname ? info.dli_fname : "?");
    }
}

static void measure(const struct graph *graph, struct plan *plan, const struct device *device)
{
    struct engine_options options = {
        .device = device, .steps = STEPS, .ignored = 0.2, .before_step = before_step};
    struct engine_result result;
    struct error err = {""};
    char text[128];
    plan_print(text, sizeof text, plan);
    own_calls = library_calls = 0;
    pthread_barrier_init(&barrier, NULL, (unsigned)plan_ranks(plan));
    int rc = engine_run(graph, plan, &options, &result, &err);
    ck_assert_msg(rc == 0, "%s: %s", text, err.text);
    pthread_barrier_destroy(&barrier);
    show("library", libraries, library_calls);
    show("own code", own, own_calls);
    ck_assert_msg(own_calls == 0, "%s on %s: %d calls of the allocator in steps %d to %d", text,
                  device->name, own_calls, FIRST_STEP, STEPS - 1);
    engine_result_finish(&result);
    plan_destroy(plan);
}

static struct graph *build(void)
{
    struct job_model config = {
        .family = "gpt", .layers = 3, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};
    struct graph *graph;
    struct error err;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, &err), 0);
    return graph;
}

START_TEST(a_step_allocates_nothing)
{
    struct graph *graph = build();
    for (int d = 0; devices[d]; d++) {
        struct error err;
        if (devices[d]->probe(&err) == 0)
            measure(graph, engine_plan_random(graph, test_seed() + (uint64_t)_i, 6, 8), devices[d]);
    }
    graph_destroy(graph);
}
END_TEST

static int taken(void *context, const struct saver_report *report, struct saver_listed *listed,
                 struct error *err)
{
    (void)context, (void)report, (void)listed, (void)err;
    return 0;
}

static void *buffer_of(void *in, int buffer)
{
    return interpreter_buffer(in, buffer);
}

/* Only what the training's own thread does: the writer may. */
static int save(void *context, int rank, struct interpreter *in, int done, struct error *err)
{
    static struct saver *saver;
    const struct saver_config config = {
        .root = context,
        .origin = {.job = "j-1", .epoch = 1, .seed = 1, .batch = 8},
        .program = in ? interpreter_program(in) : NULL,
        .staged = taken,
    };
    (void)rank;
    if (in && done == 0)
        return saver_create(&config, &saver, err);
    if (!in) {
        int rc = saver_finish(saver, err);
        saver_destroy(saver);
        return rc;
    }
    counted = pthread_self();
    own_only = true;
    counting = true;
    int rc = saver_take(saver, (uint64_t)done, buffer_of, in, err);
    counting = false;
    own_only = false;
    return rc;
}

START_TEST(a_checkpoint_is_copied_without_an_allocation)
{
    char folder[] = "/tmp/gimbal-allocations-XXXXXX", remove[64];
    struct graph *graph = build();
    struct plan *plan = engine_plan_one(graph, 1, 8);
    struct engine_options options = {.steps = 4, .hook = save, .context = folder};
    struct engine_result result;
    struct error err = {""};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    own_calls = library_calls = 0;
    int rc = engine_run(graph, plan, &options, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    show("own code", own, own_calls);
    ck_assert_int_eq(own_calls, 0);
    snprintf(remove, sizeof remove, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    engine_result_finish(&result);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_call_of_our_own_is_counted_as_ours)
{
    own_calls = library_calls = 0;
    counting = true;
    void *volatile block = malloc(1);
    free(block);
    counting = false;
    ck_assert_int_eq(own_calls, 2);
    ck_assert_str_eq(own[0].function, "malloc");
    ck_assert_str_eq(own[1].function, "free");
}
END_TEST

START_TEST(a_call_of_a_library_is_not_ours)
{
    own_calls = library_calls = 0;
    counting = true;
    char *volatile text = strdup("a copy that the C library makes");
    counting = false;
    free(text);
    ck_assert_int_eq(own_calls, 0);
    ck_assert_int_eq(library_calls, 1);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("allocations");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_call_of_our_own_is_counted_as_ours);
    tcase_add_test(tcase, a_call_of_a_library_is_not_ours);
    tcase_add_test(tcase, a_checkpoint_is_copied_without_an_allocation);
    tcase_add_loop_test(tcase, a_step_allocates_nothing, 0, test_share(12));
    return suite_run("allocations", tcase, NULL);
}

#else

int main(void)
{
    suite_skip("allocations", "a sanitizer has the allocator; the plain build counts");
    return suite_run("allocations", NULL, NULL);
}

#endif
