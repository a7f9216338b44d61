/* pack.c - streams documents through a tokenizer into a draft, which gets its header last.
 *
 * The texts are what the job's data.text would read, and folders are listed as it lists them, so
 * that both mean the same files; besides whatever has an end: pipes, too. */
#include "worker/tokenizer/pack.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/config/job.h"
#include "worker/data/files.h"
#include "worker/data/tokens.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)256 << 10)
#define NARROW_MAX 65536 /* ids below this have 16 bits */
#define TOKENS_WAITING ((size_t)64 << 10)
#define PROGRESS_S 0.2
#define NAME_SIZE 512

struct input {
    char *path;
    int standard; /* descriptor of standard input; -1: it is opened by its path */
};

struct inputs {
    struct input *items;
    size_t count, capacity;
    uint64_t bytes; /* of all together; 0: not known before they are read */
};

static void add_input(struct inputs *inputs, const char *path, int standard)
{
    inputs->items = grow(inputs->items, inputs->count, &inputs->capacity, sizeof *inputs->items);
    inputs->items[inputs->count++] = (struct input){xstrdup(path), standard};
}

static int add_folder(struct inputs *inputs, const char *path, struct error *err)
{
    struct files files = {0};
    struct texts paths = {.items = (char *[]){(char *)path}, .count = 1};
    const char *member;
    int rc = files_open_text(&files, &paths, JOB_BYTE_VOCAB, err);
    for (size_t i = 0; rc == 0 && files_at(&files, i, &member); i++)
        add_input(inputs, member, -1);
    inputs->bytes += files.size;
    files_finish(&files);
    return rc;
}

static int add_standard(struct inputs *inputs, int descriptor, struct stat *status,
                        struct error *err)
{
    if (fstat(descriptor, status) < 0)
        return error_set(err, -errno, "cannot read standard input: %s", strerror(errno));
    add_input(inputs, "-", descriptor);
    return 0;
}

static int add_path(struct inputs *inputs, const char *path, struct stat *status, struct error *err)
{
    if (stat(path, status) < 0)
        return error_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(status->st_mode))
        return add_folder(inputs, path, err);
    add_input(inputs, path, -1);
    return 0;
}

/* List what the names stand for; "-" is standard input, open as `standard`. A folder stands for the
 * files that data.text reads of it. Reads nothing but folders. -errno with the name of one that is
 * not there; the caller finishes *out in either case. */
static int list_inputs(const char *const *names, size_t count, int standard, struct inputs *out,
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

static void finish_inputs(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->items[i].path);
    free(inputs->items);
    *inputs = (struct inputs){0};
}

/* As in "'a.txt'", or "standard input"; returns out. */
static char *print_input(const struct input *input, char *out, size_t size)
{
    if (input->standard >= 0)
        snprintf(out, size, "standard input");
    else
        snprintf(out, size, "'%s'", input->path);
    return out;
}

/* Open it to be polled and read: opening a pipe does not wait for its writer. Returns a descriptor
 * for close_input(), or -errno. */
static int open_input(const struct input *input, struct error *err)
{
    if (input->standard >= 0)
        return input->standard;
    int descriptor = open(input->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return descriptor >= 0
               ? descriptor
               : error_set(err, -errno, "cannot open '%s': %s", input->path, strerror(errno));
}

static void close_input(const struct input *input, int descriptor)
{
    if (input->standard < 0)
        close(descriptor);
}

struct packer {
    const struct pack_request *request;
    struct inputs inputs;
    const struct input *input; /* that is being read */
    struct encoder *encoder;
    size_t width; /* bytes per token */
    struct pack_result result;
    char *draft;
    int fd;               /* of the draft; -1: there is none */
    struct stat replaced; /* the file that the draft will replace, if there is one */
    double progress_s;    /* when progress is due */
    unsigned char bytes[BUFFER_BYTES];
    union {
        uint16_t narrow[TOKENS_WAITING];
        uint32_t wide[TOKENS_WAITING];
    } tokens;       /* that are not yet in the draft */
    size_t waiting; /* how many they are */
};

static int packer_write(struct packer *packer, const void *data, size_t size, struct error *err)
{
    int rc = file_write_all(packer->fd, data, size);
    return rc == 0 ? 0
                   : error_set(err, rc == -ENOSPC ? rc : -EIO,
                               "cannot write '%s' beyond token %" PRIu64 ": %s",
                               packer->request->out, packer->result.tokens, strerror(-rc));
}

static int refuse_size(const char *what, struct error *err)
{
    return error_set(err, -EFBIG,
                     "%s cannot fit: a token file holds at most %" PRIu64
                     " tokens; pack several and name them all in data.tokens",
                     what, LLM_C_TOKENS_MAX);
}

static int check_room(const struct packer *packer, size_t count, struct error *err)
{
    char name[NAME_SIZE];
    return packer->result.tokens + count <= LLM_C_TOKENS_MAX
               ? 0
               : refuse_size(print_input(packer->input, name, sizeof name), err);
}

/* Where sizes are known and bytes are tokens, nothing is written in vain. */
static int check_sizes(const struct packer *packer, struct error *err)
{
    char what[64];
    if (packer->inputs.bytes <= LLM_C_TOKENS_MAX || tokenizer_path(packer->request->tokenizer))
        return 0;
    snprintf(what, sizeof what, "a text of %" PRIu64 " bytes", packer->inputs.bytes);
    return refuse_size(what, err);
}

/* Wait for input, or for the end. */
static int packer_await(const struct packer *packer, int descriptor, struct error *err)
{
    struct pollfd fds[] = {{descriptor, POLLIN, 0}, {packer->request->end, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            return error_set(err, -errno, "poll: %s", strerror(errno));
    return fds[1].revents ? error_set(err, -ECANCELED, "cancelled") : 0;
}

static void packer_tell(struct packer *packer)
{
    double now_s = clock_s();
    if (!packer->request->progress_cb || now_s < packer->progress_s)
        return;
    packer->progress_s = now_s + PROGRESS_S;
    packer->request->progress_cb(packer->request->data, packer->result.text_bytes,
                                 packer->inputs.bytes);
}

static int packer_flush(struct packer *packer, struct error *err)
{
    size_t count = packer->waiting;
    packer->waiting = 0;
    return packer_write(packer, &packer->tokens, count * packer->width, err);
}

/* Put ids behind the tokens that are waiting, for which there is room. */
static void packer_append(struct packer *packer, const int32_t *ids, size_t count)
{
    if (packer->width == sizeof(uint16_t))
        for (size_t i = 0; i < count; i++)
            packer->tokens.narrow[packer->waiting + i] = htole16((uint16_t)ids[i]);
    else
        for (size_t i = 0; i < count; i++)
            packer->tokens.wide[packer->waiting + i] = htole32((uint32_t)ids[i]);
    packer->waiting += count;
}

static int put_tokens(void *data, const int32_t *ids, size_t count, struct error *err)
{
    struct packer *packer = data;
    int rc = check_room(packer, count, err);
    packer->result.tokens += rc == 0 ? count : 0;
    while (rc == 0 && count > 0) {
        size_t room = TOKENS_WAITING - packer->waiting, part = count < room ? count : room;
        packer_append(packer, ids, part);
        ids += part;
        count -= part;
        if (packer->waiting == TOKENS_WAITING)
            rc = packer_flush(packer, err);
    }
    return rc;
}

static int begin_text(struct packer *packer, struct error *err)
{
    size_t count;
    const int32_t *before = tokenizer_before(packer->request->tokenizer, &count);
    return put_tokens(packer, before, count, err);
}

/* Encode what is left of an input; *total counts its bytes. */
static int packer_encode(struct packer *packer, const struct input *input, int descriptor,
                         uint64_t *total, struct error *err)
{
    char name[NAME_SIZE];
    for (;;) {
        int rc = packer_await(packer, descriptor, err);
        if (rc < 0)
            return rc;
        ssize_t count = read(descriptor, packer->bytes, sizeof packer->bytes);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return error_set(err, -errno, "cannot read %s beyond byte %" PRIu64 ": %s",
                             print_input(input, name, sizeof name), *total, strerror(errno));
        if (count == 0)
            return 0;
        rc = *total ? 0 : begin_text(packer, err);
        if (rc == 0)
            rc = encoder_add(packer->encoder, packer->bytes, (size_t)count, err);
        if (rc == -EFBIG || rc == -EINVAL)
            error_prefix(err, rc, "%s", print_input(input, name, sizeof name));
        if (rc < 0)
            return rc;
        *total += (uint64_t)count;
        packer->result.text_bytes += (uint64_t)count;
        packer_tell(packer);
    }
}

/* What the tokenizer itself puts behind a text may be its end. */
static int end_text(struct packer *packer, struct error *err)
{
    const struct tokenizer *tokenizer = packer->request->tokenizer;
    const int32_t end = tokenizer_end(tokenizer);
    size_t count;
    const int32_t *after = tokenizer_after(tokenizer, &count);
    bool ended = count && after[count - 1] == end;
    int rc = encoder_end(packer->encoder, err);
    if (rc == 0)
        rc = put_tokens(packer, after, count, err);
    if (rc == 0 && packer->request->end_of_text && !ended)
        rc = put_tokens(packer, &end, 1, err);
    return rc;
}

/* The file that is replaced must not be read: whoever names it means another one. */
static int check_input(const struct packer *packer, const struct input *input, int descriptor,
                       struct error *err)
{
    struct stat status;
    char name[NAME_SIZE];
    if (fstat(descriptor, &status) == 0 && packer->replaced.st_ino &&
        status.st_dev == packer->replaced.st_dev && status.st_ino == packer->replaced.st_ino)
        return error_set(err, -EINVAL, "%s is the output too: name another file for it",
                         print_input(input, name, sizeof name));
    return 0;
}

/* An empty file adds nothing, as for data.text; a pipe that brings nothing has failed. */
static int pack_input(struct packer *packer, const struct input *input, struct error *err)
{
    uint64_t total = 0;
    int descriptor = open_input(input, err);
    if (descriptor < 0)
        return descriptor;
    int rc = check_input(packer, input, descriptor, err);
    if (rc == 0)
        rc = packer_encode(packer, input, descriptor, &total, err);
    close_input(input, descriptor);
    if (rc == 0 && total == 0 && input->standard >= 0)
        return error_set(err, -EINVAL, "standard input is empty: pipe a text into it");
    if (rc < 0 || total == 0)
        return rc;
    packer->result.documents++;
    return end_text(packer, err);
}

/* Whether the output may have that name. */
static int check_out(struct packer *packer, struct error *err)
{
    const char *out = packer->request->out;
    if (stat(out, &packer->replaced) < 0)
        return errno == ENOENT
                   ? 0
                   : error_set(err, -errno, "cannot write '%s': %s", out, strerror(errno));
    if (!S_ISREG(packer->replaced.st_mode))
        return error_set(err, -EINVAL, "'%s' is no regular file: name one for the tokens", out);
    if (!packer->request->force)
        return error_set(err, -EEXIST, "'%s' is there already: --force replaces it", out);
    return 0;
}

/* Without a header the draft is no token file. */
static int packer_begin(struct packer *packer, struct error *err)
{
    static const unsigned char nothing[LLM_C_HEADER_SIZE];
    const char *out = packer->request->out;
    packer->draft = xasprintf("%s.%ld.part", out, (long)getpid());
    packer->fd = open(packer->draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (packer->fd < 0)
        return error_set(err, -errno, "cannot write '%s': %s", out, strerror(errno));
    return packer_write(packer, nothing, sizeof nothing, err);
}

static int packer_finish(struct packer *packer, struct error *err)
{
    const char *out = packer->request->out;
    unsigned char header[LLM_C_HEADER_SIZE];
    if (packer->result.documents == 0)
        return error_set(err, -EINVAL, "there is no text to pack: every file is empty");
    llm_c_header(packer->result.tokens, packer->width, header);
    packer->result.file_bytes = sizeof header + packer->result.tokens * packer->width;
    int rc = packer_flush(packer, err);
    if (rc == 0)
        rc = check_out(packer, err); /* it may have come meanwhile */
    if (rc < 0)
        return rc;
    if (lseek(packer->fd, 0, SEEK_SET) < 0)
        return error_set(err, -errno, "cannot write '%s': %s", out, strerror(errno));
    rc = packer_write(packer, header, sizeof header, err);
    if (rc < 0)
        return rc;
    if (fsync(packer->fd) < 0 || rename(packer->draft, out) < 0)
        return error_set(err, -errno, "cannot write '%s': %s", out, strerror(errno));
    rc = folder_sync_above(out);
    return rc < 0 ? error_set(err, rc, "keep '%s': %s", out, strerror(-rc)) : 0;
}

static int check_end(const struct pack_request *request, struct error *err)
{
    return !request->end_of_text || tokenizer_end(request->tokenizer) >= 0
               ? 0
               : error_set(err, -EINVAL,
                           "the tokenizer '%s' has no token that is known to end a text: name it, "
                           "as in --end-of-text='<|endoftext|>'",
                           tokenizer_path(request->tokenizer));
}

static int packer_run(struct packer *packer, struct error *err)
{
    const struct pack_request *request = packer->request;
    int rc = check_end(request, err);
    if (rc == 0)
        rc = check_out(packer, err);
    if (rc == 0)
        rc = list_inputs(request->names, request->name_count, request->input, &packer->inputs, err);
    if (rc == 0)
        rc = check_sizes(packer, err);
    if (rc == 0)
        rc = packer_begin(packer, err);
    for (size_t i = 0; rc == 0 && i < packer->inputs.count; i++) {
        packer->input = &packer->inputs.items[i];
        rc = pack_input(packer, packer->input, err);
    }
    return rc == 0 ? packer_finish(packer, err) : rc;
}

int pack_run(const struct pack_request *request, struct pack_result *out, struct error *err)
{
    struct packer *packer = xcalloc(1, sizeof *packer);
    packer->request = request;
    packer->fd = -1;
    packer->progress_s = clock_s() + PROGRESS_S;
    packer->width = tokenizer_size(request->tokenizer) <= NARROW_MAX ? 2 : 4;
    packer->encoder = encoder_create(request->tokenizer, put_tokens, packer);
    int rc = packer_run(packer, err);
    if (packer->fd >= 0) {
        close(packer->fd);
        if (rc < 0)
            unlink(packer->draft);
    }
    if (rc == 0)
        *out = packer->result;
    encoder_destroy(packer->encoder);
    finish_inputs(&packer->inputs);
    free(packer->draft);
    free(packer);
    return rc;
}
