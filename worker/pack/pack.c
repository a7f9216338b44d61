/* pack.c - streams documents through a tokenizer into a draft, which gets its header last. */
#include "worker/pack/pack.h"

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "worker/data/llm_c.h"
#include "worker/pack/inputs.h"

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

static int write_all(struct packer *packer, const void *data, size_t size, struct error *err)
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
               : refuse_size(input_print(packer->input, name, sizeof name), err);
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
static int await(const struct packer *packer, int descriptor, struct error *err)
{
    struct pollfd fds[] = {{descriptor, POLLIN, 0}, {packer->request->end, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            return error_set(err, -errno, "poll: %s", strerror(errno));
    return fds[1].revents ? error_set(err, -ECANCELED, "cancelled") : 0;
}

static void tell(struct packer *packer)
{
    double now_s = clock_now_s();
    if (!packer->request->progress_cb || now_s < packer->progress_s)
        return;
    packer->progress_s = now_s + PROGRESS_S;
    packer->request->progress_cb(packer->request->data, packer->result.text_bytes,
                                 packer->inputs.bytes);
}

static int flush(struct packer *packer, struct error *err)
{
    size_t count = packer->waiting;
    packer->waiting = 0;
    return write_all(packer, &packer->tokens, count * packer->width, err);
}

/* Put ids behind the tokens that are waiting, for which there is room. */
static void append(struct packer *packer, const int32_t *ids, size_t count)
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
        append(packer, ids, part);
        ids += part;
        count -= part;
        if (packer->waiting == TOKENS_WAITING)
            rc = flush(packer, err);
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
static int encode(struct packer *packer, const struct input *input, int descriptor, uint64_t *total,
                  struct error *err)
{
    char name[NAME_SIZE];
    for (;;) {
        int rc = await(packer, descriptor, err);
        if (rc < 0)
            return rc;
        ssize_t count = read(descriptor, packer->bytes, sizeof packer->bytes);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count < 0)
            return error_set(err, -errno, "cannot read %s beyond byte %" PRIu64 ": %s",
                             input_print(input, name, sizeof name), *total, strerror(errno));
        if (count == 0)
            return 0;
        rc = *total ? 0 : begin_text(packer, err);
        if (rc == 0)
            rc = encoder_add(packer->encoder, packer->bytes, (size_t)count, err);
        if (rc == -EFBIG || rc == -EINVAL)
            error_prefix(err, rc, "%s", input_print(input, name, sizeof name));
        if (rc < 0)
            return rc;
        *total += (uint64_t)count;
        packer->result.text_bytes += (uint64_t)count;
        tell(packer);
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
                         input_print(input, name, sizeof name));
    return 0;
}

/* An empty file adds nothing, as for data.text; a pipe that brings nothing has failed. */
static int pack_input(struct packer *packer, const struct input *input, struct error *err)
{
    uint64_t total = 0;
    int descriptor = input_open(input, err);
    if (descriptor < 0)
        return descriptor;
    int rc = check_input(packer, input, descriptor, err);
    if (rc == 0)
        rc = encode(packer, input, descriptor, &total, err);
    input_close(input, descriptor);
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
static int begin(struct packer *packer, struct error *err)
{
    static const unsigned char nothing[LLM_C_HEADER_SIZE];
    const char *out = packer->request->out;
    packer->draft = xasprintf("%s.%ld.part", out, (long)getpid());
    packer->fd = open(packer->draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (packer->fd < 0)
        return error_set(err, -errno, "cannot write '%s': %s", out, strerror(errno));
    return write_all(packer, nothing, sizeof nothing, err);
}

static int finish(struct packer *packer, struct error *err)
{
    const char *out = packer->request->out;
    unsigned char header[LLM_C_HEADER_SIZE];
    if (packer->result.documents == 0)
        return error_set(err, -EINVAL, "there is no text to pack: every file is empty");
    llm_c_header(packer->result.tokens, packer->width, header);
    packer->result.file_bytes = sizeof header + packer->result.tokens * packer->width;
    int rc = flush(packer, err);
    if (rc == 0)
        rc = check_out(packer, err); /* it may have come meanwhile */
    if (rc < 0)
        return rc;
    if (lseek(packer->fd, 0, SEEK_SET) < 0)
        return error_set(err, -errno, "cannot write '%s': %s", out, strerror(errno));
    rc = write_all(packer, header, sizeof header, err);
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
                           "the tokenizer '%s' has no token that ends a text: <|endoftext|> or "
                           "<|end_of_text|> would be one",
                           tokenizer_path(request->tokenizer));
}

static int pack(struct packer *packer, struct error *err)
{
    const struct pack_request *request = packer->request;
    int rc = check_end(request, err);
    if (rc == 0)
        rc = check_out(packer, err);
    if (rc == 0)
        rc = inputs_list(request->names, request->name_count, request->input, &packer->inputs, err);
    if (rc == 0)
        rc = check_sizes(packer, err);
    if (rc == 0)
        rc = begin(packer, err);
    for (size_t i = 0; rc == 0 && i < packer->inputs.count; i++) {
        packer->input = &packer->inputs.items[i];
        rc = pack_input(packer, packer->input, err);
    }
    return rc == 0 ? finish(packer, err) : rc;
}

int pack_run(const struct pack_request *request, struct pack_result *out, struct error *err)
{
    struct packer *packer = xcalloc(1, sizeof *packer);
    packer->request = request;
    packer->fd = -1;
    packer->progress_s = clock_now_s() + PROGRESS_S;
    packer->width = tokenizer_size(request->tokenizer) <= NARROW_MAX ? 2 : 4;
    packer->encoder = encoder_create(request->tokenizer, put_tokens, packer);
    int rc = pack(packer, err);
    if (packer->fd >= 0) {
        close(packer->fd);
        if (rc < 0)
            unlink(packer->draft);
    }
    if (rc == 0)
        *out = packer->result;
    encoder_destroy(packer->encoder);
    inputs_finish(&packer->inputs);
    free(packer->draft);
    free(packer);
    return rc;
}
