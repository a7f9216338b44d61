/* inputs.c - folders are listed as data.text lists them, so that both mean the same files. */
#include "worker/pack/inputs.h"

#include "common/base/memory.h"
#include "common/config/job.h"
#include "worker/data/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add(struct inputs *inputs, const char *path, int standard)
{
    inputs->items = grow(inputs->items, inputs->count, &inputs->capacity, sizeof *inputs->items);
    inputs->items[inputs->count++] = (struct input){xstrdup(path), standard};
}

static int add_folder(struct inputs *inputs, const char *path, struct error *err)
{
    struct files files = {0};
    struct texts paths = {.items = (char *[]){(char *)path}, .count = 1};
    const char *member;
    int rc = text_open(&files, &paths, JOB_BYTE_VOCAB, err);
    for (size_t i = 0; rc == 0 && files_at(&files, i, &member); i++)
        add(inputs, member, -1);
    inputs->bytes += files.size;
    files_finish(&files);
    return rc;
}

static int add_standard(struct inputs *inputs, int descriptor, struct stat *status,
                        struct error *err)
{
    if (fstat(descriptor, status) < 0)
        return error_set(err, -errno, "cannot read standard input: %s", strerror(errno));
    add(inputs, "-", descriptor);
    return 0;
}

static int add_path(struct inputs *inputs, const char *path, struct stat *status, struct error *err)
{
    if (stat(path, status) < 0)
        return error_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(status->st_mode))
        return add_folder(inputs, path, err);
    add(inputs, path, -1);
    return 0;
}

int inputs_list(const char *const *names, size_t count, int standard, struct inputs *out,
                struct error *err)
{
    *out = (struct inputs){0};
    bool sized = true;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        int rc = strcmp(names[i], "-") == 0 ? add_standard(out, standard, &status, err)
                                            : add_path(out, names[i], &status, err);
        if (rc < 0)
            return rc;
        if (S_ISREG(status.st_mode))
            out->bytes += (uint64_t)status.st_size;
        else if (!S_ISDIR(status.st_mode))
            sized = false;
    }
    if (!sized)
        out->bytes = 0;
    return 0;
}

void inputs_finish(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->items[i].path);
    free(inputs->items);
    *inputs = (struct inputs){0};
}

char *input_print(const struct input *input, char *out, size_t size)
{
    if (input->standard >= 0)
        snprintf(out, size, "standard input");
    else
        snprintf(out, size, "'%s'", input->path);
    return out;
}

int input_open(const struct input *input, struct error *err)
{
    if (input->standard >= 0)
        return input->standard;
    int descriptor = open(input->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return descriptor >= 0
               ? descriptor
               : error_set(err, -errno, "cannot open '%s': %s", input->path, strerror(errno));
}

void input_close(const struct input *input, int descriptor)
{
    if (input->standard < 0)
        close(descriptor);
}
