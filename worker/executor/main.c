/* main.c - gimbal-executor: parses the command line and runs one of its modes.
 *
 * A worker or the command line starts it with a channel to run one rank of a job, all ranks of a
 * job as threads, or a measurement of devices. Verifying or exporting a checkpoint and generating
 * text from one need no channel. */
#include "worker/executor/modes.h"

#include "common/base/log.h"
#include "common/base/process.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/huggingface/export.h"
#include "worker/kernels/cpu/processor.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
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
    "                                                                       for transformers\n"
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
    "  --checkpoint DIR  where N ranks save, instead of the job's checkpoint.dir\n"
    "  --resume          N ranks continue from the newest checkpoint there\n"
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

/* Parse a whole number of at least `least`; -1 if it is none, which no option accepts. */
static int whole(const char *text, int least)
{
    char *end;
    long number = strtol(text, &end, 10);
    return end == text || *end || number < least || number > INT_MAX ? -1 : (int)number;
}

/* Options of --probe and --list. */
static int take_probing(int option, struct executor_options *options)
{
    switch (option) {
    case 'q':
        options->probe = true;
        break;
    case 'o':
        options->links = true;
        break;
    case 'i':
        options->list = optarg;
        break;
    case 'f':
        options->fabric = optarg;
        break;
    case 'w':
        options->crowd = atof(optarg);
        break;
    case 'y':
        options->kept = optarg;
        break;
    case 'z':
        options->measure = true;
        break;
    default:
        return -EINVAL;
    }
    return 0;
}

/* Options of --pack and --show. */
static int take_packing(int option, struct executor_options *options)
{
    switch (option) {
    case 'P':
        options->pack = optarg;
        break;
    case 'I':
        options->input = whole(optarg, 0);
        return options->input < 0 ? -EINVAL : 0;
    case 'T':
        options->tokenizer = optarg;
        break;
    case 'E':
        options->end_of_text = true;
        break;
    case 'F':
        options->force = true;
        break;
    case 'S':
        options->show = true;
        break;
    case 'O':
        options->format = optarg;
        break;
    default:
        return take_probing(option, options);
    }
    return 0;
}

/* Options of --generate. */
static int take_writing(int option, struct executor_options *options)
{
    switch (option) {
    case 'g':
        options->generate = optarg;
        break;
    case 'm':
        options->prompt = optarg;
        break;
    case 'b':
        options->bytes = whole(optarg, 0);
        return options->bytes < 0 ? -EINVAL : 0;
    case 'a':
        options->temperature = atof(optarg);
        break;
    case 'x':
        options->seed = strtoull(optarg, NULL, 10);
        break;
    default:
        return take_packing(option, options);
    }
    return 0;
}

static int take(int option, struct executor_options *options)
{
    switch (option) {
    case 'c':
        options->channel = whole(optarg, 0);
        break;
    case 't':
        options->trail = whole(optarg, 0);
        return options->trail < 0 ? -EINVAL : 0;
    case 's':
        options->state = whole(optarg, 0);
        return options->state < 0 ? -EINVAL : 0;
    case 'l':
        options->local = whole(optarg, 1);
        break;
    case 'j':
        options->job = optarg;
        break;
    case 'p':
        options->plan = optarg;
        break;
    case 'd':
        options->devices = optarg;
        break;
    case 'n':
        options->device = optarg;
        break;
    case 'k':
        options->checkpoint = optarg;
        break;
    case 'r':
        options->resume = true;
        break;
    case 'v':
        options->verify = optarg;
        break;
    case 'e':
        options->export = optarg;
        break;
    case 'u':
        options->out = optarg;
        break;
    case 'R':
        options->report = whole(optarg, 0);
        return options->report < 0 ? -EINVAL : 0;
    case 'L':
        log_open_sentences(strcmp(optarg, "info") == 0 ? LOG_INFO : LOG_WARN);
        break;
    case 'V':
        process_print_libraries(GIMBAL_RELEASE, stdout);
        exit(EXIT_SUCCESS);
    case 'h':
        fputs(usage, stdout);
        exit(EXIT_SUCCESS);
    default:
        return take_writing(option, options);
    }
    return 0;
}

static const struct option names[] = {
    {"channel", required_argument, NULL, 'c'},
    {"trail", required_argument, NULL, 't'},
    {"state", required_argument, NULL, 's'},
    {"local", required_argument, NULL, 'l'},
    {"job", required_argument, NULL, 'j'},
    {"plan", required_argument, NULL, 'p'},
    {"probe", no_argument, NULL, 'q'},
    {"links", no_argument, NULL, 'o'},
    {"devices", required_argument, NULL, 'd'},
    {"device", required_argument, NULL, 'n'},
    {"list", required_argument, NULL, 'i'},
    {"fabric", required_argument, NULL, 'f'},
    {"crowd", required_argument, NULL, 'w'},
    {"kept", required_argument, NULL, 'y'},
    {"measure", no_argument, NULL, 'z'},
    {"verify-checkpoint", required_argument, NULL, 'v'},
    {"export-checkpoint", required_argument, NULL, 'e'},
    {"out", required_argument, NULL, 'u'},
    {"report", required_argument, NULL, 'R'},
    {"generate", required_argument, NULL, 'g'},
    {"prompt", required_argument, NULL, 'm'},
    {"bytes", required_argument, NULL, 'b'},
    {"temperature", required_argument, NULL, 'a'},
    {"seed", required_argument, NULL, 'x'},
    {"checkpoint", required_argument, NULL, 'k'},
    {"resume", no_argument, NULL, 'r'},
    {"pack", required_argument, NULL, 'P'},
    {"stdin", required_argument, NULL, 'I'},
    {"tokenizer", required_argument, NULL, 'T'},
    {"end-of-text", no_argument, NULL, 'E'},
    {"force", no_argument, NULL, 'F'},
    {"show", no_argument, NULL, 'S'},
    {"format", required_argument, NULL, 'O'},
    {"sentences", required_argument, NULL, 'L'},
    {"versions", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int read_flags(int argc, char **argv, struct executor_options *options)
{
    int option, rc = 0;
    *options = (struct executor_options){.channel = -1,
                                         .trail = -1,
                                         .state = -1,
                                         .report = -1,
                                         .input = -1,
                                         .crowd = 1,
                                         .prompt = ""};
    while (rc == 0 && (option = getopt_long(argc, argv, "h", names, NULL)) != -1)
        rc = take(option, options);
    options->names = (const char *const *)argv + optind;
    options->name_count = (size_t)(argc - optind);
    return rc;
}

static int verify_checkpoint(const struct executor_options *options, struct error *err)
{
    return checkpoint_verify(options->verify, stdout, err);
}

/* export_run polls for these signals between two tensors, so that it can clean up. */
static int export_checkpoint(const struct executor_options *options, struct error *err)
{
    const struct export_request request = {
        .checkpoint = options->export, .job = options->job, .out = options->out};
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
    log_open("executor", LOG_INFO);
    int rc = read_flags(argc, argv, &options);
    const struct mode *mode = find_mode(&options);
    if (rc < 0 || !fits(mode, &options)) {
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
