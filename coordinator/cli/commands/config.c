/* config.c - `gimbal config`: what the programs are set to, and where each setting comes from. The
 * daemons report their own as they would read them here and now: from their file, the environment,
 * and the arguments after the name of one. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 64

struct shown {
    struct table *table;
    json_t *items;
};

static void config_add(struct shown *shown, const char *program, const char *key, const char *value,
                       const char *origin)
{
    table_add(shown->table, "%s", program);
    table_add(shown->table, "%s", key);
    table_add(shown->table, "%s", value);
    table_add(shown->table, "%s", origin);
    json_array_append_new(
        shown->items,
        resource_object("Setting", json_pack("{s:s, s:s, s:s*, s:s}", "program", program, "key",
                                             key, "value", *value ? value : NULL, "from", origin)));
}

/* Add lines in the format of settings_show(). */
static void config_add_lines(struct shown *shown, const char *program, char *text)
{
    for (char *line; (line = strsep(&text, "\n"));) {
        char *key = strsep(&line, "\t"), *value = line ? strsep(&line, "\t") : NULL;
        if (value && line)
            config_add(shown, program, key, value, line);
    }
}

static void config_add_own(struct shown *shown, const struct common *common)
{
    const char *address = getenv("GIMBAL_ADDRESS"), *tls = getenv("GIMBAL_TLS");
    const char *standard = "default";
    config_add(shown, "gimbal", "address", client_address(common),
               common->address       ? "--address"
               : address && *address ? "GIMBAL_ADDRESS"
                                     : standard);
    config_add(shown, "gimbal", "tls",
               common->tls ? common->tls
               : tls       ? tls
                           : "",
               common->tls   ? "--tls"
               : tls && *tls ? "GIMBAL_TLS"
                             : standard);
}

static const char *const daemons[] = {"coordinator", "worker"};
#define DAEMONS (sizeof daemons / sizeof *daemons)

/* Ask in the environment that a daemon would have: if GIMBAL_TLS is a user's, it and the address
 * that belongs to it are not the daemon's. */
static int config_ask_daemon(const char *name, const char *const *words, char **out,
                             struct error *err)
{
    static const char *const of_user[] = {"GIMBAL_TLS", "GIMBAL_ADDRESS", NULL};
    const struct common environment = {0};
    return process_ask_text(name, words, client_role(&environment) == CLIENT_USER ? of_user : NULL,
                            out, err);
}

static int config_add_daemon(struct shown *shown, const char *daemon, char *const *flags, int count,
                             struct error *err)
{
    const char *words[ARGUMENTS_MAX + 2] = {"--show"};
    char *name = xasprintf("gimbal-%s", daemon), *text;
    for (int i = 0; i < count; i++)
        words[i + 1] = flags[i];
    int rc = config_ask_daemon(name, words, &text, err);
    if (rc == 0) {
        config_add_lines(shown, daemon, text);
        free(text);
    }
    free(name);
    return rc < 0 ? EXIT_CONFIGURATION : EXIT_DONE;
}

static int config_add_chosen(struct shown *shown, const struct invocation *invocation,
                             struct error *err)
{
    const char *program = invocation->arguments[0];
    for (size_t i = 0; i < DAEMONS; i++)
        if (strcmp(program, daemons[i]) == 0)
            return config_add_daemon(shown, program, invocation->arguments + 1,
                                     invocation->argument_count - 1, err);
    return error_set(err, EXIT_USAGE, "'%s' has no settings: write coordinator or worker", program);
}

/* If the settings of one cannot be read, say so and still show the other's. */
static int config_add_all(struct shown *shown, const struct invocation *invocation,
                          struct error *err)
{
    int code = EXIT_DONE;
    struct error why = {""};
    config_add_own(shown, &invocation->common);
    for (size_t i = 0; i < DAEMONS; i++) {
        if (config_add_daemon(shown, daemons[i], NULL, 0, &why) == EXIT_DONE)
            continue;
        if (code != EXIT_DONE)
            fprintf(stderr, "gimbal config show: %s\n", err->text);
        *err = why;
        code = EXIT_CONFIGURATION;
    }
    return code;
}

static int config_show(const struct invocation *invocation, struct error *err)
{
    static const struct column columns[] = {{"PROGRAM"}, {"SETTING"}, {"VALUE"}, {"FROM"}};
    const struct common *common = &invocation->common;
    struct shown shown = {table_create(columns, 4), json_array()};
    int code = invocation->argument_count > 0 ? config_add_chosen(&shown, invocation, err)
                                              : config_add_all(&shown, invocation, err);
    bool any = json_array_size(shown.items) > 0;
    if (any && common->output < OUTPUT_JSON)
        table_print(shown.table, (enum output)common->output, !common->no_headers, stdout);
    if (any && common->output >= OUTPUT_JSON)
        output_print_list((enum output)common->output, "SettingList", "settings", shown.items,
                          stdout);
    else
        json_decref(shown.items);
    table_destroy(shown.table);
    return code;
}

const struct command command_config_show = {
    .name = "config show",
    .summary = "Show each setting and where it is from: flag, environment, file or default",
    .arguments = "[coordinator|worker [-- ITS FLAGS]]",
    .arguments_max = ARGUMENTS_MAX,
    .takes = TAKES_OUTPUT | TAKES_ADDRESS,
    .run = config_show,
};

static const struct command *const config_below[] = {&command_config_show, NULL};

const struct command command_config = {
    .name = "config",
    .summary = "Show the settings of coordinator, worker and this command",
    .arguments = "show ...",
    .below = config_below,
};
