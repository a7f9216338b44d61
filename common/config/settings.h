/* settings.h - the settings of a daemon, in layers: flags override the environment, which overrides
 * files, which override defaults.
 *
 * Settings are described by a table (fields.h) and remember where their value came from. The key
 * state_dir, for example, is `state_dir:` in a file, GIMBAL_STATE_DIR in the environment and
 * --state-dir as a flag, and jobs of the section retention is `retention: {jobs: ...}`,
 * GIMBAL_RETENTION_JOBS and --retention-jobs; in the latter two, lists are separated by commas.
 * Layers have to be read from lowest to highest: files, environment, flags. */
#ifndef COMMON_CONFIG_SETTINGS_H
#define COMMON_CONFIG_SETTINGS_H

#include "common/base/error.h"
#include "common/base/flags.h"
#include "common/config/fields.h"

#include <stdbool.h>
#include <stdio.h>

struct settings;

/* Fill the zeroed struct that the table describes with the defaults; table and struct are
 * borrowed and must outlive the settings. */
struct settings *settings_create(const struct field *fields, void *values);
/* Also frees what the values own. Accepts NULL. */
void settings_destroy(struct settings *settings);

/* Read one layer. -EINVAL with the line and column in the file, or the name of the variable or
 * flag. A later file overrides an earlier one. A missing file is an error (-ENOENT) only if
 * must_exist. */
int settings_read_file(struct settings *settings, const char *path, bool must_exist,
                       struct error *err);
int settings_read_environment(struct settings *settings, struct error *err);
/* Read the command line, by the rows of the daemon's own flags and one for each setting. What it
 * says of settings is kept until settings_read_flags(), because other layers come first, and the
 * line may name one of them. *argument becomes the first word that is no flag, or NULL. -EINVAL. */
int settings_read_line(struct settings *settings, const struct flag *own, void *target, int argc,
                       char **argv, const char **argument, struct error *err);
/* Print the help of the settings, as flags, and of the daemon's own flags. */
void settings_print_help(const struct settings *settings, const struct flag *own, FILE *out);
/* The highest layer: what that line says, which must still be there. */
int settings_read_flags(struct settings *settings, struct error *err);
/* To be called after the last layer. -EINVAL when a required setting is missing; the text says how
 * to give it. */
int settings_check(const struct settings *settings, struct error *err);

/* Where a value came from: "default", "/etc/gimbal/worker.yaml:3:10", "GIMBAL_ADDRESS" or
 * "--address". Valid until the next layer is read. NULL when the table has no such key; those of
 * sections are "retention.jobs". */
const char *settings_origin(const struct settings *settings, const char *key);

/* Print a line for each setting: key, value and origin, separated by tabs. The value is empty if
 * there is none. */
void settings_show(const struct settings *settings, FILE *out);

#endif
