/* showing.c - tells what files of tokens hold, one message a file. */
#include "worker/executor/modes.h"

#include "common/base/utf8.h"
#include "common/channel/channel.h"
#include "proto/executor.pb-c.h"
#include "worker/data/tokens.h"
#include "worker/tokenizer/byte_buffer.h"
#include "worker/tokenizer/tokenizer.h"

#include <string.h>

#define FIRST_TOKENS 32

static enum job_format find_told(const char *word)
{
    for (int i = 0; word && job_formats[i]; i++)
        if (strcmp(job_formats[i], word) == 0)
            return (enum job_format)i;
    return JOB_FORMAT_AUTO;
}

static int open_tokenizer(const char *name, struct tokenizer **out, struct error *err)
{
    if (!name || strcmp(name, "bytes") != 0)
        return name ? tokenizer_open(name, out, err) : 0;
    tokenizer_open_bytes(true, out);
    return 0;
}

/* What the file says, or else how often the token is there that ends one; what is behind the last
 * of these is a document, too. */
static void count_documents(const struct token_file *file, const struct tokenizer *tokenizer,
                            Gimbal__ExecutorShown *out)
{
    const struct elements elements = file->elements;
    int32_t end = tokenizer ? tokenizer_end(tokenizer) : -1;
    out->documents_known = file->documents != DOCUMENTS_UNKNOWN || end >= 0;
    if (file->documents != DOCUMENTS_UNKNOWN)
        out->documents = file->documents;
    else if (end >= 0 && elements.count)
        out->documents = elements_count(elements, (uint32_t)end) +
                         (elements_at(elements, elements.count - 1) != (uint32_t)end);
}

static void decode_first(const Gimbal__ExecutorShown *shown, const struct tokenizer *tokenizer,
                         struct byte_buffer *out)
{
    for (size_t i = 0; i < shown->n_first; i++) {
        size_t size;
        const char *text = tokenizer_text(tokenizer, shown->first[i], &size);
        byte_buffer_add(out, text ? text : "", text ? size : 0);
    }
    out->size -= utf8_cut(out->bytes, out->size);
}

static void send(struct channel *channel, Gimbal__ExecutorShown *shown)
{
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_SHOWN;
    event.shown = shown;
    channel_write(channel, &event.base, NULL); /* if nobody reads it, nobody needs it */
}

static void tell(struct channel *channel, const struct token_file *file, const char *format,
                 const struct tokenizer *tokenizer)
{
    const struct elements elements = file->elements;
    Gimbal__ExecutorShown shown = GIMBAL__EXECUTOR_SHOWN__INIT;
    uint32_t first[FIRST_TOKENS] = {0};
    struct byte_buffer text;
    byte_buffer_init(&text);
    shown.file = file->path;
    shown.format = (char *)format;
    shown.token_bytes = (uint32_t)elements.width;
    shown.tokens = elements.count;
    shown.file_bytes = file->file.size;
    count_documents(file, tokenizer, &shown);
    if (elements.count)
        elements_range(elements, &shown.smallest, &shown.largest);
    for (; shown.n_first < FIRST_TOKENS && shown.n_first < elements.count; shown.n_first++)
        first[shown.n_first] = elements_at(elements, shown.n_first);
    shown.first = first;
    shown.text_known = tokenizer != NULL;
    if (tokenizer)
        decode_first(&shown, tokenizer, &text);
    shown.text = (ProtobufCBinaryData){text.size, (uint8_t *)text.bytes};
    send(channel, &shown);
    byte_buffer_finish(&text);
}

static int show(struct channel *channel, const char *path, const char *told,
                const struct tokenizer *tokenizer, struct error *err)
{
    struct token_file file;
    const struct data_format *format;
    int rc = token_file_open(path, find_told(told), &file, &format, err);
    if (rc == 0 && tokenizer)
        rc = token_file_check(&file, tokenizer_size(tokenizer), "the size of the tokenizer", err);
    if (rc == 0)
        tell(channel, &file, format->name, tokenizer);
    token_file_finish(&file);
    return rc;
}

int executor_show(const struct executor_options *options, struct error *err)
{
    struct channel channel;
    struct tokenizer *tokenizer = NULL;
    channel_open(&channel, options->channel);
    int rc = open_tokenizer(options->tokenizer, &tokenizer, err);
    for (size_t i = 0; i < options->name_count && rc == 0; i++)
        rc = show(&channel, options->names[i], options->format, tokenizer, err);
    if (rc < 0) {
        Gimbal__ExecutorShown failure = GIMBAL__EXECUTOR_SHOWN__INIT;
        failure.failed = (uint32_t)-rc;
        failure.error = err->text;
        send(&channel, &failure);
    }
    channel_close(&channel);
    tokenizer_close(tokenizer);
    return rc;
}
