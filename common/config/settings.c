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

struct settings {
    const struct field *fields;
    void *values;
    enum layer layer; /* the highest layer read so far */
    char **origins;   /* one per row; NULL: default */
    size_t count;
    struct flag *flags; /* one per row, of settings_read_line(), and what they were given */
    const char **texts;
    char *path; /* of the last file that was to be read */
};

struct settings *settings_create(const struct field *fields, void *values)
{
    struct settings *settings = xcalloc(1, sizeof *settings);
    settings->fields = fields;
    settings->values = values;
    for (const struct field *field = fields; field->key; field++) {
        assert(field->kind != FIELD_SECTION);
        settings->count++;
    }
    settings->origins = xcalloc(settings->count, sizeof *settings->origins);
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
        free(settings->origins[i]);
        free((char *)settings->flags[i].name);
    }
    free(settings->origins);
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
    free(settings->origins[row]);
    settings->origins[row] = origin;
}

/* "state_dir" as a variable, "GIMBAL_STATE_DIR", or as a flag, "--state-dir". */
static char *print_variable(const char *key)
{
    char *name = xasprintf("GIMBAL_%s", key);
    for (char *letter = name; *letter; letter++)
        *letter = (char)toupper((unsigned char)*letter);
    return name;
}

static char *print_flag(const char *key)
{
    char *name = xasprintf("--%s", key);
    for (char *letter = name; *letter; letter++)
        *letter = *letter == '_' ? '-' : *letter;
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
        const yaml_node_t *node = document_find(document, settings->fields[row].key);
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
    int rc = field_set(&settings->fields[row], text, settings->values, err);
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
        char *name = print_variable(settings->fields[row].key);
        const char *text = getenv(name);
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
        char *name = print_flag(settings->fields[row].key);
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
        const struct field *field = &settings->fields[row];
        bool off =
            !field->standard || field->kind == FIELD_BOOLEAN || strcmp(field->standard, "0") == 0;
        char *name = print_flag(field->key);
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
            rc = set_value(settings, row, settings->texts[row],
                           print_flag(settings->fields[row].key), err);
        settings->texts[row] = NULL;
    }
    return rc;
}

int settings_check(const struct settings *settings, struct error *err)
{
    for (size_t row = 0; row < settings->count; row++) {
        const struct field *field = &settings->fields[row];
        if (!field->required || field->standard || settings->origins[row])
            continue;
        char *flag = print_flag(field->key), *variable = print_variable(field->key);
        char right[512];
        error_set(err, -EINVAL, "%s is not set: give %s (%s), set %s or write '%s:' in %s",
                  field->key, flag, field_describe(field, right, sizeof right), variable,
                  field->key, settings->path ? settings->path : "the configuration file");
        free(flag);
        free(variable);
        return -EINVAL;
    }
    return 0;
}

const char *settings_origin(const struct settings *settings, const char *key)
{
    const struct field *field = fields_find(settings->fields, key);
    if (!field)
        return NULL;
    const char *origin = settings->origins[field - settings->fields];
    return origin ? origin : "default";
}

void settings_show(const struct settings *settings, FILE *out)
{
    for (size_t row = 0; row < settings->count; row++) {
        const struct field *field = &settings->fields[row];
        char *text = field_print(field, settings->values);
        fprintf(out, "%s\t%s\t%s\n", field->key, text ? text : "",
                settings_origin(settings, field->key));
        free(text);
    }
}
