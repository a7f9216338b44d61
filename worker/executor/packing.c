/* packing.c - writes texts as a token file, and reports how far it is and how that ended.
 *
 * It ends early when the process that started it goes away or closes the channel. Signals are left
 * aside, so that nothing half-written stays behind. */
#include "worker/executor/modes.h"

#include "common/channel/channel.h"
#include "common/rpc/message.h"
#include "proto/executor.pb-c.h"
#include "worker/tokenizer/pack.h"

#include <signal.h>

static void send_progress(void *data, uint64_t bytes, uint64_t total)
{
    Gimbal__ExecutorPacking packing = GIMBAL__EXECUTOR_PACKING__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    packing.bytes = bytes;
    packing.bytes_total = total;
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PACKING;
    event.packing = &packing;
    channel_write(data, &event.base, NULL); /* a broken channel is noticed by pack_run */
}

static void send_end(struct channel *channel, const struct pack_request *request,
                     const struct pack_result *result, int rc, struct error *err)
{
    Gimbal__ExecutorPacked packed = GIMBAL__EXECUTOR_PACKED__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    packed.documents = result->documents;
    packed.text_bytes = result->text_bytes;
    packed.tokens = result->tokens;
    packed.file_bytes = result->file_bytes;
    packed.vocab = request->tokenizer ? (uint32_t)tokenizer_size(request->tokenizer) : 0;
    packed.failed = (uint32_t)-rc;
    if (rc < 0) {
        message_mend_text(err->text); /* a file name need not be valid UTF-8 */
        packed.error = err->text;
    }
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_PACKED;
    event.packed = &packed;
    channel_write(channel, &event.base, NULL);
}

int executor_pack(const struct executor_options *options, struct error *err)
{
    struct channel channel;
    struct pack_result result = {0};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    channel_open(&channel, options->channel);
    struct tokenizer *tokenizer = NULL;
    int rc = 0;
    if (options->tokenizer)
        rc = tokenizer_open(options->tokenizer, &tokenizer, err);
    else
        tokenizer_open_bytes(options->end_of_text, &tokenizer);
    const struct pack_request request = {.names = options->names,
                                         .name_count = options->name_count,
                                         .input = options->input,
                                         .tokenizer = tokenizer,
                                         .out = options->pack,
                                         .end_of_text = options->end_of_text,
                                         .force = options->force,
                                         .end = options->channel,
                                         .progress_cb = send_progress,
                                         .data = &channel};
    if (rc == 0)
        rc = pack_run(&request, &result, err);
    send_end(&channel, &request, &result, rc, err);
    channel_close(&channel);
    tokenizer_close(tokenizer);
    return rc;
}
