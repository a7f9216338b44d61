/* explain.c - `gimbal explain [KEY]`: what may be written in a job file or a cluster file, from the
 * tables that parse them.
 *
 * A key is written as in error messages, "train.lr". A key of a file other than a job's begins with
 * the name of the file, "cluster.nodes"; one of a job's may. Exit statuses are explained by their
 * numbers. */
#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/config/job.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/planning/cluster_file.h"

#include <stdlib.h>
#include <string.h>

#define STATUSES "status" /* the word for exit statuses */
#define KEYS_MAX 32       /* of one section */
#define KEY_WIDTH 29

struct file {
    const char *name;
    const struct field *fields;
};

static const struct file files[] = {
    {"job", job_config_fields},
    {"cluster", cluster_config_fields},
};

/* Add {key, value, default, required, about} of the row and of all rows below it. */
static void explain_add_row(json_t *keys, const char *above, const struct field *field)
{
    char value[256], *key = xasprintf("%s%s%s", above, *above ? "." : "", field->key);
    json_array_append_new(keys, json_pack("{s:s, s:s, s:s*, s:b, s:s}", "key", key, "value",
                                          field_describe(field, value, sizeof value), "default",
                                          field->standard, "required", field->required, "about",
                                          field->about));
    for (const struct field *row = field->fields; row && row->key; row++)
        explain_add_row(keys, key, row);
    free(key);
}

static const char *explain_nearest_key(const struct field *fields, const char *key)
{
    const char *names[KEYS_MAX];
    size_t count = 0;
    for (const struct field *row = fields; row->key && count < KEYS_MAX; row++)
        names[count++] = row->key;
    return text_nearest(key, names, count);
}

/* near: the key that is most like the word after the first `known` bytes of path; NULL: none is. */
static int explain_refuse(const struct file *file, const char *path, size_t known, const char *near,
                          struct error *err)
{
    if (near)
        return error_set(err, EXIT_INPUT, "a %s file has no key '%s'; did you mean '%.*s%s'?",
                         file->name, path, (int)known, path, near);
    return error_set(err, EXIT_INPUT, "a %s file has no key '%s'; 'gimbal explain %s' lists them",
                     file->name, path, file->name);
}

/* Go down from the table by all words of the path; *field stays NULL for an empty one. 0 or
 * EXIT_INPUT. */
static int explain_find(const struct file *file, const char *path, const struct field **field,
                        struct error *err)
{
    const struct field *fields = file->fields;
    *field = NULL;
    for (const char *at = path; *at;) {
        size_t length = strcspn(at, ".");
        char *key = xasprintf("%.*s", (int)length, at);
        const char *near = fields ? explain_nearest_key(fields, key) : NULL;
        *field = fields ? fields_find(fields, key) : NULL;
        free(key);
        if (!*field)
            return explain_refuse(file, path, (size_t)(at - path), near, err);
        fields = (*field)->fields;
        at += length + (at[length] == '.');
    }
    return 0;
}

/* "train.steps    how often the weights are updated", and below it what may be written. A long key
 * has a line of its own. */
static void explain_print_key(const json_t *key)
{
    const char *name = json_string_value(json_object_get(key, "key"));
    const char *standard = json_string_value(json_object_get(key, "default"));
    bool is_long = strlen(name) >= KEY_WIDTH;
    printf("%-*s%s%*s%s\n%*s%s%s%s%s\n", KEY_WIDTH, name, is_long ? "\n" : "",
           is_long ? KEY_WIDTH : 0, "", json_string_value(json_object_get(key, "about")), KEY_WIDTH,
           "", json_is_true(json_object_get(key, "required")) ? "required; " : "",
           json_string_value(json_object_get(key, "value")), standard ? "; default " : "",
           standard ? standard : "");
}

static void explain_print(const struct common *common, json_t *keys)
{
    size_t i;
    json_t *key;
    if (common->output >= OUTPUT_JSON) {
        output_print_list((enum output)common->output, "Explanation", "keys", keys, stdout);
        return;
    }
    json_array_foreach(keys, i, key) explain_print_key(key);
    json_decref(keys);
}

/* The file whose name the path begins with, or else that of a job; *path is moved past the name. */
static const struct file *explain_find_file(const char **path)
{
    size_t length = strcspn(*path, ".");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].name) == length && strncmp(files[i].name, *path, length) == 0) {
            *path += length + ((*path)[length] == '.');
            return &files[i];
        }
    return &files[0];
}

/* All exit statuses, or one by its number. */
static int explain_explain_statuses(const struct common *common, const char *word,
                                    struct error *err)
{
    static const struct column columns[] = {{"STATUS", .right = true}, {"MEANS"}};
    struct table *table = table_create(columns, 2);
    json_t *items = json_array();
    bool all = strcmp(word, STATUSES) == 0;
    for (const struct exit_meaning *row = exit_meanings; row->means; row++) {
        if (!all && strtol(word, NULL, 10) != row->status)
            continue;
        table_add(table, "%d", row->status);
        table_add(table, "%s", row->means);
        json_array_append_new(
            items, resource_object("ExitStatus", json_pack("{s:i, s:s}", "status", row->status,
                                                           "means", row->means)));
    }
    int code = EXIT_DONE;
    if (json_array_size(items) == 0)
        code = error_set(err, EXIT_INPUT,
                         "no command ends with status %s; 'gimbal explain %s' lists "
                         "those that there are",
                         word, STATUSES);
    else if (common->output >= OUTPUT_JSON)
        output_print_list((enum output)common->output, "ExitStatusList", "statuses",
                          json_incref(items), stdout);
    else
        table_print(table, (enum output)common->output, !common->no_headers, stdout);
    json_decref(items);
    table_destroy(table);
    return code;
}

static int explain_run(const struct invocation *invocation, struct error *err)
{
    const char *path = invocation->argument_count > 0 ? invocation->arguments[0] : "";
    if (strcmp(path, STATUSES) == 0 || (*path && path[strspn(path, "0123456789")] == '\0'))
        return explain_explain_statuses(&invocation->common, path, err);
    const struct file *file = explain_find_file(&path);
    const struct field *field;
    if (explain_find(file, path, &field, err) != 0)
        return EXIT_INPUT;
    json_t *keys = json_array();
    const char *last = strrchr(path, '.');
    char *above = xasprintf("%.*s", last ? (int)(last - path) : 0, path);
    if (field)
        explain_add_row(keys, above, field);
    for (const struct field *row = file->fields; !field && row->key; row++)
        explain_add_row(keys, "", row);
    free(above);
    explain_print(&invocation->common, keys);
    return EXIT_DONE;
}

const struct command command_explain = {
    .name = "explain",
    .summary =
        "Describe keys, such as train.lr or cluster.nodes, or exit statuses (kubectl explain)",
    .arguments = "[job|cluster|KEY|status|STATUS]",
    .arguments_min = 0,
    .arguments_max = 1,
    .takes = TAKES_OUTPUT,
    .run = explain_run,
};
