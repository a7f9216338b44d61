/* data_fixture.c - see data_fixture.h. */
#include "tests/worker/data/data_fixture.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char data_folder[64];

void data_setup(void)
{
    snprintf(data_folder, sizeof data_folder, "/tmp/gimbal-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(data_folder));
    ck_assert_int_eq(chdir(data_folder), 0);
}

void data_teardown(void)
{
    char *command = xasprintf("rm -r '%s'", data_folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

void write_ramp(const char *path, size_t first, size_t size)
{
    unsigned char *bytes = xcalloc(size, 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((first + i) % 251);
    write_file(path, bytes, size);
    free(bytes);
}

static int open_job(const char *data, const char *eval, int seq, int seed, int64_t known,
                    struct data_source **source, struct error *err)
{
    char *text =
        xasprintf("apiVersion: gimbal/v1\nname: test\n"
                  "model: {family: gpt, layers: 1, hidden: 8, heads: 1, seq: %d, vocab: 300}\n"
                  "data: {%s}\ntrain: {steps: 1, global_batch: 1, lr: 1, seed: %d}\n"
                  "eval: {%s}\n",
                  seq, data, seed, eval);
    struct job_config *job;
    struct error words = {""};
    int rc = job_config_parse(text, strlen(text), "job", &job, &words);
    ck_assert_msg(rc == 0, "%s", words.text);
    free(text);
    rc = data_open(job, known, source, err);
    job_config_destroy(job); /* the source does not need it any more */
    return rc;
}

struct data_source *open_evaluated(const char *data, const char *eval, int seq, int seed)
{
    struct data_source *source = NULL;
    struct error err = {""};
    int rc = open_job(data, eval, seq, seed, 0, &source, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return source;
}

struct data_source *open_data(const char *data, int seq, double holdout, int seed)
{
    char eval[64];
    snprintf(eval, sizeof eval, "holdout: %g", holdout);
    return open_evaluated(data, eval, seq, seed);
}

int refuse_data(const char *data, const char *eval, int64_t known, struct error *err)
{
    struct data_source *source = NULL;
    int rc = open_job(data, eval, 8, 1, known, &source, err);
    ck_assert_ptr_null(source);
    return rc;
}

void check_refused(const char *data, int seq, double holdout, int rc, const char *sentence)
{
    struct data_source *source = NULL;
    struct error err = {""};
    char eval[64];
    snprintf(eval, sizeof eval, "holdout: %g", holdout);
    ck_assert_int_eq(open_job(data, eval, seq, 1, 0, &source, &err), rc);
    ck_assert_str_eq(err.text, sentence);
    ck_assert_ptr_null(source);
}
