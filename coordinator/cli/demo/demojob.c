/* demojob.c - a job file in which only the text, the steps and the devices vary. */
#include "coordinator/cli/demo/demojob.h"

#include "common/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Trains for a minute on two idle cores and learns words and the look of a quotation. There is only
 * one stage, so that what one worker holds is likely to be held by another one, too. */
static const char format[] = "apiVersion: gimbal/v1\n"
                             "name: demo\n"
                             "model: {family: gpt, layers: 4, hidden: 128, heads: 4, seq: 64}\n"
                             "data: {text: [%s]}\n"
                             "train: {steps: %lld, global_batch: 32, lr: 2.0e-3, warmup: %lld}\n"
                             "devices: {min: %d, max: %d}\n"
                             "plan: {pin: {pp: 1}}\n"
                             "eval: {every: 100, holdout: 0.05, sample: 400}\n";

static int is_text(const struct dirent *entry)
{
    return entry->d_type == DT_REG && !strchr(entry->d_name, '.');
}

/* List the files of fortunes one by one. Next to each are an index, .dat, and a link to the same
 * text, .u8; the link would put the held-out text among what is learned. */
static int list_fortunes(char **out, struct error *err)
{
    struct dirent **entries;
    size_t size;
    int count = scandir(DEMOJOB_TEXT, &entries, is_text, alphasort);
    if (count <= 0)
        return error_set(err, -ENOENT,
                         "there is no text to train on in " DEMOJOB_TEXT
                         ": run 'apt-get install fortunes', or name a file or folder of text with "
                         "--text");
    FILE *list = open_memstream(out, &size);
    for (int i = 0; i < count; i++) {
        fprintf(list, "%s'" DEMOJOB_TEXT "/%s'", i ? ", " : "", entries[i]->d_name);
        free(entries[i]);
    }
    fclose(list);
    free(entries);
    return 0;
}

static int list_given(const char *path, char **out, struct error *err)
{
    char whole[PATH_MAX];
    if (!realpath(path, whole)) {
        int rc = -errno;
        return error_set(err, rc, "--text '%s': %s", path, strerror(-rc));
    }
    if (strpbrk(whole, "'\n"))
        return error_set(err, -EINVAL, "--text '%s': the path may not contain quotes", path);
    *out = xasprintf("'%s'", whole);
    return 0;
}

int demojob_write(const char *text_path, int64_t steps, int devices, char **out, struct error *err)
{
    char *list = NULL;
    int rc = text_path ? list_given(text_path, &list, err) : list_fortunes(&list, err);
    if (rc < 0)
        return rc;
    long long warmup = steps < 500 ? steps / 10 : 50;
    *out =
        xasprintf(format, list, (long long)steps, warmup, devices > 1 ? devices - 1 : 1, devices);
    free(list);
    return 0;
}
