/* settings.c - one row per setting: each is a flag, an environment variable and a key of the
 * file. */
#include "coordinator/settings.h"

#include "common/config/unknown.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FILE_STANDARD "/etc/gimbal/coordinator.yaml"

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};

const struct field coordinator_fields[] = {
    {.key = "address",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct coordinator_settings, address),
     .standard = "tcp://127.0.0.1:7070"},
    {.key = "address_file",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct coordinator_settings, address_file)},
    {.key = "state", .kind = FIELD_TEXT, .offset = offsetof(struct coordinator_settings, state)},
    {.key = "heartbeat",
     .kind = FIELD_DURATION,
     .offset = offsetof(struct coordinator_settings, heartbeat),
     .standard = "1s",
     .least = 0.01,
     .greatest = 3600},
    {.key = "dead_after",
     .kind = FIELD_DURATION,
     .offset = offsetof(struct coordinator_settings, dead_after),
     .standard = "5s",
     .least = 0.01,
     .greatest = 24 * 3600},
    {.key = "log_level",
     .kind = FIELD_CHOICE,
     .offset = offsetof(struct coordinator_settings, log_level),
     .standard = "info",
     .words = levels},
    {.key = "tls", .kind = FIELD_TEXT, .offset = offsetof(struct coordinator_settings, tls)},
    {.key = "join_tokens",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct coordinator_settings, join_tokens)},
    {.key = "http", .kind = FIELD_TEXT, .offset = offsetof(struct coordinator_settings, http)},
    {.key = "http_token",
     .kind = FIELD_TEXT,
     .offset = offsetof(struct coordinator_settings, http_token)},
    {.key = "drills",
     .kind = FIELD_BOOLEAN,
     .offset = offsetof(struct coordinator_settings, drills),
     .standard = "false"},
    {.key = NULL},
};

#define SETTINGS (sizeof coordinator_fields / sizeof *coordinator_fields - 1)
#define NAME_SIZE 32 /* of a setting's flag, including the final NUL */

/* Values that getopt returns: of the flag of a setting, FLAG_SETTING plus its row. */
enum { FLAG_CONFIG = 256, FLAG_CHECK, FLAG_SHOW, FLAG_VERSIONS, FLAG_RESTORE, FLAG_SETTING };

static const struct option own[] = {
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {"config", required_argument, NULL, FLAG_CONFIG},
    {"check", no_argument, NULL, FLAG_CHECK},
    {"versions", no_argument, NULL, FLAG_VERSIONS},
    {"show", no_argument, NULL, FLAG_SHOW},
    {"restore", required_argument, NULL, FLAG_RESTORE},
};
#define OWN (sizeof own / sizeof *own)

/* Flags in getopt's form: first those that are not settings, then one per setting. */
struct flags {
    struct option options[OWN + SETTINGS + 1];
    char names[SETTINGS][NAME_SIZE];
};

/* The command line, with settings as texts. */
struct line {
    struct coordinator_line asked;
    const char *file;
    const char *values[SETTINGS];
};

/* A setting's flag is its key, with dashes. */
static void flags_make(struct flags *flags)
{
    *flags = (struct flags){0};
    memcpy(flags->options, own, sizeof own);
    for (size_t row = 0; row < SETTINGS; row++) {
        char *name = flags->names[row];
        snprintf(name, NAME_SIZE, "%s", coordinator_fields[row].key);
        for (char *dash = name; (dash = strchr(dash, '_'));)
            *dash = '-';
        flags->options[OWN + row] =
            (struct option){name, required_argument, NULL, FLAG_SETTING + (int)row};
    }
}

static int settings_read_line(int argc, char **argv, struct line *line, struct error *err)
{
    struct flags flags;
    const struct known_flags known = {flags.options, ":hV", "see --help"};
    flags_make(&flags);
    opterr = 0;
    optind = 0; /* restarts glibc's getopt, which may have stopped within a word */
    for (;;) {
        const char *word = unknown_next_word(argc, argv);
        int flag = getopt_long(argc, argv, known.letters, flags.options, NULL);
        if (flag == -1)
            break;
        if (flag == 'h')
            line->asked.command = COORDINATOR_HELP;
        else if (flag == 'V')
            line->asked.command = COORDINATOR_VERSION;
        else if (flag == FLAG_CONFIG)
            line->file = optarg;
        else if (flag == FLAG_CHECK)
            line->asked.command = COORDINATOR_CHECK;
        else if (flag == FLAG_VERSIONS)
            line->asked.command = COORDINATOR_VERSIONS;
        else if (flag == FLAG_SHOW)
            line->asked.command = COORDINATOR_SHOW;
        else if (flag == FLAG_RESTORE)
            line->asked = (struct coordinator_line){COORDINATOR_RESTORE, optarg};
        else if (flag >= FLAG_SETTING)
            line->values[flag - FLAG_SETTING] = optarg;
        else
            return unknown_refuse(&known, flag, word, err);
    }
    if (optind < argc)
        return error_set(err, -EINVAL, "'%s' is not a flag; see --help", argv[optind]);
    return 0;
}

int coordinator_settings_read(struct settings *settings, int argc, char **argv,
                              struct coordinator_line *asked, bool *usage, struct error *err)
{
    struct line line = {.asked.command = COORDINATOR_RUN};
    *usage = true;
    int rc = settings_read_line(argc, argv, &line, err);
    *asked = line.asked;
    if (rc < 0 || asked->command >= COORDINATOR_HELP) /* those want no settings */
        return rc;
    *usage = false;
    rc =
        settings_read_file(settings, line.file ? line.file : FILE_STANDARD, line.file != NULL, err);
    if (rc == 0)
        rc = settings_read_environment(settings, err);
    if (rc < 0)
        return rc;
    *usage = true;
    for (size_t i = 0; i < SETTINGS && rc == 0; i++)
        if (line.values[i])
            rc = settings_set_flag(settings, coordinator_fields[i].key, line.values[i], err);
    return rc;
}
