/* settings.h - a daemon's settings, in layers: flag over environment over file over default.
 *
 * Each remembers where its value came from. The table is that of fields.h without sections; a
 * key such as state_dir is `state_dir:` in a file, GIMBAL_STATE_DIR in the environment and
 * --state-dir as a flag; lists are separated by commas in the latter two. The layers are
 * read from the lowest to the highest: files, then environment, then flags. */
#ifndef COMMON_CONFIG_SETTINGS_H
#define COMMON_CONFIG_SETTINGS_H

#include "common/base/error.h"
#include "common/config/fields.h"

#include <stdbool.h>
#include <stdio.h>

struct settings;

/* Fill the zeroed struct that the table describes with the defaults; table and struct are
 * borrowed and must outlive the settings. */
struct settings *settings_create(const struct field *fields, void *values);
/* Also frees what the values own. NULL is fine. */
void settings_destroy(struct settings *settings);

/* -EINVAL with the file's line and column, the variable's or the flag's name. A later file goes
 * over an earlier one; a file that is not there is an error (-ENOENT) only if it must be. */
int settings_read_file(struct settings *settings, const char *path, bool must_exist,
                       struct error *err);
int settings_read_environment(struct settings *settings, struct error *err);
/* key as in the table. */
int settings_set_flag(struct settings *settings, const char *key, const char *text,
                      struct error *err);
/* After the last layer: -EINVAL when a required setting is nowhere, with the ways to give it. */
int settings_check(const struct settings *settings, struct error *err);

/* "default", "/etc/gimbal/worker.yaml:3:10", "GIMBAL_ADDRESS" or "--address"; lent until the next
 * layer is read. NULL when the table has no such key. */
const char *settings_origin(const struct settings *settings, const char *key);

/* A line for each setting: its key, its value and its origin, with tabs between. One that has no
 * value has none here. */
void settings_show(const struct settings *settings, FILE *out);

#endif
