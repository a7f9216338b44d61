/* main.c - gimbal-executor: parses the command line and runs one of its modes.
 *
 * A worker or the command line starts it with a channel to run one rank of a job, all ranks of a
 * job as threads, or a measurement of devices. Verifying or exporting a checkpoint and generating
 * text from one need no channel. */
#include "worker/executor/modes.h"

#include "common/base/flags.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/huggingface/export.h"
#include "worker/kernels/cpu/processor.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: gimbal-executor --channel FD [--state FD] [--devices SET]       run one assigned rank\n"
    "       gimbal-executor --channel FD --local N --job FILE --plan FILE   run N ranks as "
    "threads\n"
    "       gimbal-executor --channel FD --probe [--devices SETS]           measure devices\n"
    "       gimbal-executor --channel FD --probe --links --device NAME      measure their links\n"
    "       gimbal-executor --channel FD --list KIND                        list devices of a "
    "kind\n"
    "                                                                       (\"\": of all)\n"
    "       gimbal-executor --verify-checkpoint DIRECTORY                   read and check it all\n"
    "       gimbal-executor --export-checkpoint DIRECTORY --job FILE --out DIRECTORY\n"
    "                       [--dtype f32|bf16]                              for transformers\n"
    "       gimbal-executor --generate DIRECTORY --job FILE                 write text with its "
    "model\n"
    "       gimbal-executor --channel FD --pack FILE TEXT...                texts as a token file\n"
    "       gimbal-executor --channel FD --show FILE...                     what token files hold\n"
    "\n"
    "  --channel FD      a socket to the process that started this one\n"
    "  --trail FD        memory in which it reports how far its rank is\n"
    "  --state FD        a file for the rank's state, with what the last executor left there\n"
    "  --devices SETS    cores of each device, \"0-1;2-3\" (the process's cores, divided)\n"
    "  --device NAME     what N ranks compute on, or what to measure: cuda, or\n"
    "                    cuda:GPU-6f0c... for one of several (the cores)\n"
    "  --links           measure the links between devices: --device cuda:GPU-6f0c...,GPU-91d2...\n"
    "  --fabric NAME     what to measure links with: local or gloo\n"
    "  --kept DIR        where the probe keeps measurements of the cores of --devices, and looks\n"
    "                    for them; with --measure it measures again\n"
    "  --checkpoint DIR  where N ranks save; nothing else may save there\n"
    "  --resume          N ranks continue from the newest checkpoint there\n"
    "  --from DIR        N ranks go on from this checkpoint; with --weights-only they begin with\n"
    "                    its weights, at step 0\n"
    "  --report FD       where an error goes, its number and its sentence, instead of the log\n"
    "  --prompt TEXT     the text to continue, with --bytes N, --temperature NUMBER, --seed N\n"
    "  --stdin FD        the text \"-\", with --end-of-text after each text; --force replaces "
    "FILE\n"
    "  --tokenizer PATH  what makes tokens of texts (every byte is one)\n"
    "  --format WORD     how token files are read, as data.format of a job\n"
    "  --sentences LEVEL log in sentences, for people: from info or from warn on\n"
    "  --crowd NUMBER    how many devices share a core, here and in other processes\n"
    "  --versions        print the release and the versions of libraries\n"
    "  -h, --help        print this text\n";

#define AT(member, what) .kind = what, .offset = offsetof(struct executor_options, member)

static const char *const dtypes[] = {[ELEMENT_F32] = "f32", [ELEMENT_BF16] = "bf16", NULL};

static const struct flag flags[] = {
    {"channel", 0, AT(channel, FLAG_INTEGER)},
    {"trail", 0, AT(trail, FLAG_INTEGER)},
    {"state", 0, AT(state, FLAG_INTEGER)},
    {"report", 0, AT(report, FLAG_INTEGER)},
    {"local", 0, AT(local, FLAG_INTEGER), .least = 1},
    {"job", 0, AT(job, FLAG_TEXT)},
    {"plan", 0, AT(plan, FLAG_TEXT)},
    {"probe", 0, AT(probe, FLAG_SWITCH)},
    {"links", 0, AT(links, FLAG_SWITCH)},
    {"devices", 0, AT(devices, FLAG_TEXT)},
    {"device", 0, AT(device, FLAG_TEXT)},
    {"list", 0, AT(list, FLAG_TEXT)},
    {"fabric", 0, AT(fabric, FLAG_TEXT)},
    {"crowd", 0, AT(crowd, FLAG_REAL)},
    {"kept", 0, AT(kept, FLAG_TEXT)},
    {"measure", 0, AT(measure, FLAG_SWITCH)},
    {"verify-checkpoint", 0, AT(verify, FLAG_TEXT)},
    {"export-checkpoint", 0, AT(export, FLAG_TEXT)},
    {"out", 0, AT(out, FLAG_TEXT)},
    {"dtype", 0, AT(dtype, FLAG_WORD), .words = dtypes},
    {"generate", 0, AT(generate, FLAG_TEXT)},
    {"prompt", 0, AT(prompt, FLAG_TEXT)},
    {"bytes", 0, AT(bytes, FLAG_INTEGER)},
    {"temperature", 0, AT(temperature, FLAG_REAL)},
    {"seed", 0, AT(seed, FLAG_NUMBER)},
    {"checkpoint", 0, AT(checkpoint, FLAG_TEXT)},
    {"resume", 0, AT(resume, FLAG_SWITCH)},
    {"from", 0, AT(from, FLAG_TEXT)},
    {"weights-only", 0, AT(weights_only, FLAG_SWITCH)},
    {"pack", 0, AT(pack, FLAG_TEXT)},
    {"stdin", 0, AT(input, FLAG_INTEGER)},
    {"tokenizer", 0, AT(tokenizer, FLAG_TEXT)},
    {"end-of-text", 0, AT(end_of_text, FLAG_OPTION)},
    {"force", 0, AT(force, FLAG_SWITCH)},
    {"show", 0, AT(show, FLAG_SWITCH)},
    {"format", 0, AT(format, FLAG_TEXT)},
    {"sentences", 0, AT(sentences, FLAG_TEXT)},
    {"versions", 0, AT(versions, FLAG_SWITCH)},
    {"help", 'h', AT(help, FLAG_SWITCH)},
    {.name = NULL},
};

/* What only prints ends here. */
static int read_flags(int argc, char **argv, struct executor_options *options, struct error *err)
{
    *options = (struct executor_options){.channel = -1,
                                         .trail = -1,
                                         .state = -1,
                                         .report = -1,
                                         .input = -1,
                                         .crowd = 1,
                                         .prompt = ""};
    struct flag_table table = {flags, options};
    int next, rc = flags_read(&table, 1, "see --help", false, argc, argv, &next, err);
    if (rc < 0)
        return rc;
    if (options->versions)
        process_print_libraries(GIMBAL_RELEASE, stdout);
    else if (options->help)
        fputs(usage, stdout);
    if (options->versions || options->help)
        exit(EXIT_SUCCESS);
    if (options->sentences)
        log_open_sentences(strcmp(options->sentences, "info") == 0 ? LOG_INFO : LOG_WARN);
    options->names = (const char *const *)argv + next;
    options->name_count = (size_t)(argc - next);
    return 0;
}

static int verify_checkpoint(const struct executor_options *options, struct error *err)
{
    return checkpoint_verify(options->verify, stdout, err);
}

/* export_run polls for these signals between two tensors, so that it can clean up. */
static int export_checkpoint(const struct executor_options *options, struct error *err)
{
    const struct export_request request = {.checkpoint = options->export,
                                           .job = options->job,
                                           .out = options->out,
                                           .element = (enum element)options->dtype};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    return export_run(&request, stdout, err);
}

/* What a mode cannot do without. */
enum needs { CHANNEL = 1, JOB = 2, PLAN = 4, OUT = 8, DEVICE = 16, PROBE = 32, NAMES = 64 };

#define BY(member)                                                                                 \
    offsetof(struct executor_options, member), sizeof((struct executor_options *)NULL)->member

/* The first whose option was given runs; the last has none. */
static const struct mode {
    size_t offset, size; /* of the option that asks for it, which then is not zero */
    int needs;
    bool tells; /* an error has been sent over the channel when it returns */
    int (*run)(const struct executor_options *options, struct error *err);
} modes[] = {
    {BY(verify), 0, false, verify_checkpoint},
    {BY(export), JOB | OUT, false, export_checkpoint},
    {BY(generate), JOB, false, executor_generate},
    {BY(pack), CHANNEL | NAMES, true, executor_pack},
    {BY(show), CHANNEL | NAMES, true, executor_show},
    {BY(links), CHANNEL | DEVICE | PROBE, true, executor_links},
    {BY(probe), CHANNEL, true, executor_probe},
    {BY(list), CHANNEL, false, executor_list},
    {BY(local), CHANNEL | JOB | PLAN, true, executor_local},
    {0, 0, CHANNEL, false, executor_rank},
};

static bool is_asked_for(const struct mode *mode, const struct executor_options *options)
{
    static const char nothing[sizeof(void *)];
    return memcmp((const char *)options + mode->offset, nothing, mode->size) != 0;
}

static const struct mode *find_mode(const struct executor_options *options)
{
    const struct mode *mode = modes;
    while (mode->size > 0 && !is_asked_for(mode, options))
        mode++;
    return mode;
}

/* Whether the options make sense together. */
static bool fits(const struct mode *mode, const struct executor_options *options)
{
    int there = (options->channel >= 0 ? CHANNEL : 0) | (options->job ? JOB : 0) |
                (options->plan ? PLAN : 0) | (options->out ? OUT : 0) |
                (options->device ? DEVICE : 0) | (options->probe ? PROBE : 0) |
                (options->name_count > 0 ? NAMES : 0);
    bool alone = options->local == 0 || mode->run == executor_local;
    bool keeps = !options->kept || (options->probe && options->devices);
    return (mode->needs & ~there) == 0 && (mode->needs & NAMES) == (there & NAMES) && alone &&
           keeps && options->local >= 0 && options->crowd >= 1;
}

int main(int argc, char **argv)
{
    struct executor_options options;
    struct error err = {""};
    process_hold_standard();
    log_open("executor", LOG_INFO);
    int rc = read_flags(argc, argv, &options, &err);
    const struct mode *mode = find_mode(&options);
    if (rc == 0 && !fits(mode, &options))
        rc = error_set(&err, -EINVAL, "these flags do not make sense together");
    if (rc < 0) {
        fprintf(stderr, "gimbal-executor: %s\n", err.text);
        fputs(usage, stderr);
        return 64;
    }
    subnormal_flush();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the size limit then fails with EFBIG */
    rc = mode->run(&options, &err);
    if (rc < 0 && rc != -ECANCELED && !mode->tells &&
        (options.report < 0 || dprintf(options.report, "%d %s", -rc, err.text) < 0))
        log_line(LOG_ERROR, "%s", err.text);
    return rc == 0 ? EXIT_SUCCESS : rc == -ECANCELED ? 130 : EXIT_FAILURE;
}
