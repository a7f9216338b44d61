/* settings.c - every layer writes into the same struct and records itself as the origin of the rows
 * that it wrote. */
#include "common/config/settings.h"

#include "common/base/memory.h"
#include "common/config/document.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum layer { LAYER_DEFAULT, LAYER_FILE, LAYER_ENVIRONMENT, LAYER_FLAG };

/* A setting: a row of the table, or of a section's. */
struct row {
    const struct field *field;
    void *values; /* its struct */
    char *path;   /* "state_dir", "retention.jobs" */
    char *origin; /* NULL: default */
};

struct settings {
    const struct field *fields;
    void *values;
    enum layer layer; /* the highest layer read so far */
    struct row *rows;
    size_t count, capacity;
    struct flag *flags; /* one per row, of settings_read_line(), and what they were given */
    const char **texts;
    char *path; /* of the last file that was to be read */
};

static void settings_add(struct settings *settings, const char *above, const struct field *fields,
                         void *values)
{
    for (const struct field *field = fields; field->key; field++) {
        char *path = xasprintf("%s%s%s", above, *above ? "." : "", field->key);
        if (field->kind == FIELD_SECTION) {
            settings_add(settings, path, field->fields, (char *)values + field->offset);
            free(path);
            continue;
        }
        settings->rows =
            grow(settings->rows, settings->count, &settings->capacity, sizeof *settings->rows);
        settings->rows[settings->count++] = (struct row){field, values, path, NULL};
    }
}

struct settings *settings_create(const struct field *fields, void *values)
{
    struct settings *settings = xcalloc(1, sizeof *settings);
    settings->fields = fields;
    settings->values = values;
    settings_add(settings, "", fields, values);
    settings->flags = xcalloc(settings->count + 1, sizeof *settings->flags);
    settings->texts = xcalloc(settings->count, sizeof *settings->texts);
    fields_defaults(fields, values);
    return settings;
}

void settings_destroy(struct settings *settings)
{
    if (!settings)
        return;
    for (size_t i = 0; i < settings->count; i++) {
        free(settings->rows[i].origin);
        free(settings->rows[i].path);
        free((char *)settings->flags[i].name);
    }
    free(settings->rows);
    free(settings->flags);
    free(settings->texts);
    free(settings->path);
    fields_clear(settings->fields, settings->values);
    free(settings);
}

static void settings_enter(struct settings *settings, enum layer layer)
{
    assert(layer >= settings->layer && "layers are read from the lowest to the highest");
    settings->layer = layer;
}

/* Takes origin. */
static void set_origin(struct settings *settings, size_t row, char *origin)
{
    free(settings->rows[row].origin);
    settings->rows[row].origin = origin;
}

/* "state_dir" as a variable, "GIMBAL_STATE_DIR", or as a flag, "--state-dir"; "retention.jobs" as
 * "GIMBAL_RETENTION_JOBS" or "--retention-jobs". */
static char *print_variable(const struct row *row)
{
    char *name = xasprintf("GIMBAL_%s", row->path);
    for (char *letter = name; *letter; letter++)
        *letter = *letter == '.' ? '_' : (char)toupper((unsigned char)*letter);
    return name;
}

static char *print_flag(const struct row *row)
{
    char *name = xasprintf("--%s", row->path);
    for (char *letter = name; *letter; letter++)
        *letter = *letter == '_' || *letter == '.' ? '-' : *letter;
    return name;
}

int settings_read_file(struct settings *settings, const char *path, bool must_exist,
                       struct error *err)
{
    settings_enter(settings, LAYER_FILE);
    free(settings->path);
    settings->path = xstrdup(path);
    struct document *document;
    int rc = document_load(path, &document, err);
    if (rc == -ENOENT && !must_exist)
        return 0;
    if (rc < 0)
        return rc;
    rc = fields_merge(settings->fields, document, settings->values, err);
    for (size_t row = 0; rc == 0 && row < settings->count; row++) {
        const yaml_node_t *node = document_find(document, settings->rows[row].path);
        if (node)
            set_origin(settings, row,
                       xasprintf("%s:%zu:%zu", path, node->start_mark.line + 1,
                                 node->start_mark.column + 1));
    }
    document_destroy(document);
    return rc;
}

/* Takes origin. */
static int set_value(struct settings *settings, size_t row, const char *text, char *origin,
                     struct error *err)
{
    int rc = field_set(settings->rows[row].field, text, settings->rows[row].values, err);
    if (rc < 0) {
        error_prefix(err, rc, "%s", origin);
        free(origin);
        return rc;
    }
    set_origin(settings, row, origin);
    return 0;
}

int settings_read_environment(struct settings *settings, struct error *err)
{
    settings_enter(settings, LAYER_ENVIRONMENT);
    int rc = 0;
    for (size_t row = 0; rc == 0 && row < settings->count; row++) {
        char *name = print_variable(&settings->rows[row]);
        const char *text = getenv(name), *other = settings->rows[row].field->variable;
        if (!text && other && (text = getenv(other))) {
            free(name);
            name = xstrdup(other);
        }
        if (text)
            rc = set_value(settings, row, text, name, err);
        else
            free(name);
    }
    return rc;
}

int settings_read_line(struct settings *settings, const struct flag *own, void *target, int argc,
                       char **argv, const char **argument, struct error *err)
{
    int next;
    for (size_t row = 0; row < settings->count; row++) {
        struct flag *flag = &settings->flags[row];
        free((char *)flag->name);
        char *name = print_flag(&settings->rows[row]);
        *flag = (struct flag){.name = xstrdup(name + strlen("--")),
                              .kind = FLAG_TEXT,
                              .offset = row * sizeof *settings->texts};
        free(name);
    }
    struct flag_table tables[] = {{own, target}, {settings->flags, settings->texts}};
    int rc = flags_read(tables, 2, "see --help", false, argc, argv, &next, err);
    *argument = next < argc ? argv[next] : NULL;
    return rc;
}

void settings_print_help(const struct settings *settings, const struct flag *own, FILE *out)
{
    for (size_t row = 0; row < settings->count; row++) {
        const struct field *field = settings->rows[row].field;
        bool off =
            !field->standard || field->kind == FIELD_BOOLEAN || strcmp(field->standard, "0") == 0;
        char *name = print_flag(&settings->rows[row]);
        char *help =
            off ? xstrdup(field->about) : xasprintf("%s (%s)", field->about, field->standard);
        flags_print(
            &(struct flag){.name = name + strlen("--"), .value = field->value, .help = help}, out);
        free(help);
        free(name);
    }
    for (const struct flag *flag = own; flag->name; flag++)
        flags_print(flag, out);
}

int settings_read_flags(struct settings *settings, struct error *err)
{
    settings_enter(settings, LAYER_FLAG);
    int rc = 0;
    for (size_t row = 0; rc == 0 && row < settings->count; row++) {
        if (settings->texts[row])
            rc = set_value(settings, row, settings->texts[row], print_flag(&settings->rows[row]),
                           err);
        settings->texts[row] = NULL;
    }
    return rc;
}

int settings_check(const struct settings *settings, struct error *err)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct row *row = &settings->rows[i];
        const struct field *field = row->field;
        if (!field->required || field->standard || row->origin)
            continue;
        char *flag = print_flag(row), *variable = print_variable(row);
        char right[512];
        error_set(err, -EINVAL, "%s is not set: give %s (%s), set %s or write '%s:' in %s",
                  row->path, flag, field_describe(field, right, sizeof right), variable, row->path,
                  settings->path ? settings->path : "the configuration file");
        free(flag);
        free(variable);
        return -EINVAL;
    }
    return 0;
}

const char *settings_origin(const struct settings *settings, const char *key)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->rows[i].path, key) == 0)
            return settings->rows[i].origin ? settings->rows[i].origin : "default";
    return NULL;
}

void settings_show(const struct settings *settings, FILE *out)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct row *row = &settings->rows[i];
        char *text = field_print(row->field, row->values);
        fprintf(out, "%s\t%s\t%s\n", row->path, text ? text : "",
                settings_origin(settings, row->path));
        free(text);
    }
}
