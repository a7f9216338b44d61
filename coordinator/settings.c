/* settings.c - one row per setting: each is a flag, an environment variable and a key of the
 * file. */
#include "coordinator/settings.h"

#include <errno.h>
#include <stddef.h>

#define FILE_STANDARD "/etc/gimbal/coordinator.yaml"

const struct field coordinator_fields[] = {
    {FIELD(coordinator_settings, address, FIELD_TEXT), .standard = "tcp://127.0.0.1:7070"},
    {FIELD(coordinator_settings, address_file, FIELD_TEXT)},
    {FIELD(coordinator_settings, state, FIELD_TEXT)},
    {FIELD(coordinator_settings, heartbeat, FIELD_DURATION), .standard = "1s", .least = 0.01,
     .greatest = 3600},
    {FIELD(coordinator_settings, dead_after, FIELD_DURATION), .standard = "5s", .least = 0.01,
     .greatest = 24 * 3600},
    {FIELD(coordinator_settings, log_level, FIELD_CHOICE), .standard = "info",
     .words = log_level_names},
    {FIELD(coordinator_settings, tls, FIELD_TEXT)},
    {FIELD(coordinator_settings, join_tokens, FIELD_TEXT)},
    {FIELD(coordinator_settings, http, FIELD_TEXT)},
    {FIELD(coordinator_settings, http_token, FIELD_TEXT)},
    {FIELD(coordinator_settings, drills, FIELD_BOOLEAN), .standard = "false"},
    {.key = NULL},
};

/* What the line says besides settings. */
struct line {
    int command;
    const char *file, *backup;
};

#define AT(member, what) .kind = what, .offset = offsetof(struct line, member)

static const struct flag line_flags[] = {
    {"help", 'h', AT(command, FLAG_SET), .standard = COORDINATOR_HELP},
    {"version", 'V', AT(command, FLAG_SET), .standard = COORDINATOR_VERSION},
    {"versions", 0, AT(command, FLAG_SET), .standard = COORDINATOR_VERSIONS},
    {"config", 0, AT(file, FLAG_TEXT)},
    {"check", 0, AT(command, FLAG_SET), .standard = COORDINATOR_CHECK},
    {"show", 0, AT(command, FLAG_SET), .standard = COORDINATOR_SHOW},
    {"restore", 0, AT(backup, FLAG_TEXT)},
    {.name = NULL},
};

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
