/* settings.c - one row per setting: each is a flag, an environment variable and a key of the
 * file. */
#include "coordinator/settings.h"

#include <errno.h>
#include <stddef.h>

#define FILE_STANDARD "/etc/gimbal/coordinator.yaml"

static const struct field retention_fields[] = {
    {FIELD(coordinator_retention, jobs, FIELD_INTEGER), .standard = "1000", .least = 1,
     .greatest = 1e6, .unit = "jobs", .value = "N",
     .about = "how many of the jobs that have ended are kept, those that ended last"},
    {FIELD(coordinator_retention, age, FIELD_DURATION), .least = 60,
     .greatest = 100 * 366 * 86400.0, .value = "TIME",
     .about = "and how long after their end, such as 90d; by default however long"},
    {.key = NULL},
};

const struct field coordinator_fields[] = {
    {FIELD(coordinator_settings, address, FIELD_TEXT), .standard = "tcp://127.0.0.1:7070",
     .value = "ADDRESS",
     .about = "tcp://HOST:PORT: listen there and at PORT + 1, only on loopback; port 0: at free "
              "ports. tls+tcp://HOST:PORT, with --tls: for workers at PORT, users at PORT + 2 and "
              "administrators at PORT + 4, and at the port above each"},
    {FIELD(coordinator_settings, tls, FIELD_TEXT), .value = "DIR",
     .about = "the coordinator's folder from 'gimbal cluster init'"},
    {FIELD(coordinator_settings, join_tokens, FIELD_TEXT), .value = "FILE",
     .about = "join tokens agreed on beforehand, one a line: worker or user, ID.SECRET, how long "
              "it is valid (24h), number of uses"},
    {FIELD(coordinator_settings, http, FIELD_TEXT), .value = "HOST:PORT",
     .about = "serve the dashboard, the API, /metrics for Prometheus, /livez and /readyz; beyond "
              "loopback over TLS, with --tls's certificate"},
    {FIELD(coordinator_settings, http_token, FIELD_TEXT), .value = "FILE",
     .about = "whoever reads there, except /livez and /readyz, has to send the content of FILE "
              "(Authorization: Bearer TOKEN); required beyond loopback"},
    {FIELD(coordinator_settings, address_file, FIELD_TEXT), .value = "PATH",
     .about = "write the address to PATH once it listens; with TLS or --http, a line for each "
              "address"},
    {FIELD(coordinator_settings, state, FIELD_TEXT), .value = "DIR",
     .about = "keep jobs and events in DIR, on a local disk (root: /var/lib/gimbal/coordinator, "
              "others: below ~/.local/state)"},
    {FIELD(coordinator_settings, checkpoints, FIELD_TEXT), .value = "DIR",
     .about = "save jobs that name no folder below DIR, which all nodes share (without --tls: "
              "checkpoints below --state; none: nowhere)"},
    {FIELD(coordinator_settings, heartbeat, FIELD_DURATION), .standard = "1s", .least = 0.01,
     .greatest = 3600, .value = "DURATION", .about = "how often workers report"},
    {FIELD(coordinator_settings, dead_after, FIELD_DURATION), .standard = "5s", .least = 0.01,
     .greatest = 24 * 3600, .value = "DURATION",
     .about = "a worker that is silent for this long is lost; more than 3 heartbeats"},
    {FIELD(coordinator_settings, retention, FIELD_SECTION), .fields = retention_fields},
    {FIELD(coordinator_settings, drills, FIELD_BOOLEAN), .standard = "false", .value = "BOOLEAN",
     .about = "true: allow 'gimbal drill', which injects faults into jobs"},
    {FIELD(coordinator_settings, log_level, FIELD_CHOICE), .standard = "info",
     .words = log_level_names, .value = "LEVEL", .about = "debug, info, warn or error"},
    {.key = NULL},
};

/* What the line says besides settings. */
struct line {
    int command;
    const char *file, *backup;
};

#define AT(member, what) .kind = what, .offset = offsetof(struct line, member)

static const struct flag line_flags[] = {
    {"config", 0, AT(file, FLAG_TEXT), .value = "FILE",
     .help = "the settings file (" FILE_STANDARD ", if it exists)"},
    {"check", 0, AT(command, FLAG_SET), .standard = COORDINATOR_CHECK,
     .help = "read the settings, report what is wrong with them, and exit"},
    {"show", 0, AT(command, FLAG_SET), .standard = COORDINATOR_SHOW,
     .help = "print each setting and where it is from, and exit"},
    {"restore", 0, AT(backup, FLAG_TEXT), .value = "FILE",
     .help = "put what 'gimbal cluster backup FILE' wrote into --state, and exit; a store that is "
             "there is set aside"},
    {"help", 'h', AT(command, FLAG_SET), .standard = COORDINATOR_HELP, .help = "print this text"},
    {"version", 'V', AT(command, FLAG_SET), .standard = COORDINATOR_VERSION,
     .help = "print the version"},
    {"versions", 0, AT(command, FLAG_SET), .standard = COORDINATOR_VERSIONS,
     .help = "print the version, and those of libraries"},
    {.name = NULL},
};

void coordinator_print_help(const struct settings *settings, FILE *out)
{
    fputs("usage: gimbal-coordinator [FLAG...]\n"
          "Registers workers, plans jobs and tells the workers what to run.\n\n",
          out);
    settings_print_help(settings, line_flags, out);
    fputs(
        "\nEach setting may also be a key of the file (dead_after: 5s, retention: {jobs: 500})\n"
        "or an environment variable (GIMBAL_DEAD_AFTER=5s, GIMBAL_RETENTION_JOBS=500). Flags take\n"
        "precedence over variables, variables over the file.\n",
        out);
}

static int coordinator_read_line(struct settings *settings, int argc, char **argv,
                                 struct line *line, struct error *err)
{
    const char *argument;
    int rc = settings_read_line(settings, line_flags, line, argc, argv, &argument, err);
    if (rc == 0 && argument)
        rc = error_set(err, -EINVAL, "'%s' is not a flag; see --help", argument);
    if (line->backup && line->command == COORDINATOR_RUN)
        line->command = COORDINATOR_RESTORE;
    return rc;
}

int coordinator_settings_read(struct settings *settings, int argc, char **argv,
                              struct coordinator_line *asked, bool *usage, struct error *err)
{
    struct line line = {.command = COORDINATOR_RUN};
    *usage = true;
    int rc = coordinator_read_line(settings, argc, argv, &line, err);
    *asked = (struct coordinator_line){(enum coordinator_command)line.command, line.backup};
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
    return settings_read_flags(settings, err);
}
