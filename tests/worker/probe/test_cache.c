/* test_cache.c - what is asked of cores is the same at every start, and another question once
 * anything is different that decides how fast they are. */
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "worker/probe/cache.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In another process, at other addresses. */
static uint64_t hash_elsewhere(void)
{
    uint64_t hash = 0;
    char program[256] = "", command[300];
    ck_assert_int_gt(readlink("/proc/self/exe", program, sizeof program - 1), 0);
    snprintf(command, sizeof command, "'%s' --hash", program);
    FILE *other = popen(command, "re");
    ck_assert_ptr_nonnull(other);
    ck_assert_int_eq(fscanf(other, "%lx", &hash), 1);
    ck_assert_int_eq(pclose(other), 0);
    return hash;
}

START_TEST(another_start_has_the_same_programs)
{
    ck_assert_uint_ne(loaded_hash(), 0);
    ck_assert_uint_eq(loaded_hash(), loaded_hash());
    ck_assert_uint_eq(hash_elsewhere(), loaded_hash());
}
END_TEST

START_TEST(words_to_libraries_tell_programs_apart)
{
    static const char *const names[] = {"OMP_NUM_THREADS",  "OPENBLAS_CORETYPE",
                                        "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA",
                                        "GOMP_SPINCOUNT",   "GIMBAL_CPU_ISA"};
    uint64_t plain = loaded_hash(), last = plain;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv(names[i], "12345", 1);
        ck_assert_uint_ne(loaded_hash(), last);
        last = loaded_hash();
        ck_assert_uint_eq(hash_elsewhere(), last);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("GIMBAL_ANYTHING", "12345", 1);
    ck_assert_uint_eq(loaded_hash(), plain);
}
END_TEST

START_TEST(a_library_more_is_another_program)
{
    uint64_t plain = loaded_hash();
    void *library = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    ck_assert_uint_ne(loaded_hash(), plain);
    ck_assert_int_eq(dlclose(library), 0);
    ck_assert_uint_eq(loaded_hash(), plain);
}
END_TEST

START_TEST(the_question_has_the_machine_and_what_was_asked)
{
    struct probe_cache kept;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    probe_cache_ask(&kept, "/proc/nonexistent", "cpu", "0;1", "gloo", 1.5);
    ck_assert_str_eq(kept.question.host, host);
    ck_assert_str_ne(kept.question.processor, "");
    ck_assert_uint_eq(strtoull(kept.question.programs, NULL, 16), loaded_hash());
    ck_assert_str_eq(kept.question.device, "cpu");
    ck_assert_str_eq(kept.question.cpusets, "0;1");
    ck_assert_str_eq(kept.question.fabric, "gloo");
    ck_assert(kept.question.crowd == 1.5);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%lx\n", loaded_hash());
        return EXIT_SUCCESS;
    }
    TCase *tcase = tcase_create("kept probe");
    tcase_add_test(tcase, another_start_has_the_same_programs);
    tcase_add_test(tcase, words_to_libraries_tell_programs_apart);
    tcase_add_test(tcase, a_library_more_is_another_program);
    tcase_add_test(tcase, the_question_has_the_machine_and_what_was_asked);
    return suite_run("kept probe", tcase, NULL);
}
