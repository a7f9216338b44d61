/* version.c - `gimbal version` and `gimbal --version`; with --all, of everything in reach: the
 * programs installed here with their libraries, the coordinator, and its workers. */
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/commands.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/process.h"

#include "common/base/memory.h"
#include "common/base/process.h"
#include "common/message/message.h"
#include "common/rpc/transport.h"

#include <stdlib.h>
#include <string.h>

struct version_values {
    bool all;
};

static const struct flag version_flags[] = {
    {"all", 'a', FLAG_SWITCH, offsetof(struct version_values, all), NULL,
     "also of the other programs, their libraries, the coordinator and the workers"},
    {.name = NULL},
};

static void version_print_own(enum output output)
{
    if (output >= OUTPUT_JSON)
        output_print_object(
            output,
            resource_object("Version",
                            json_pack("{s:s, s:{s:i, s:i}}", "release", GIMBAL_VERSION, "protocol",
                                      "major", RPC_PROTOCOL_MAJOR, "minor", RPC_PROTOCOL_MINOR)),
            stdout);
    else
        printf("gimbal %s (protocol %d.%d)\n", GIMBAL_VERSION, RPC_PROTOCOL_MAJOR,
               RPC_PROTOCOL_MINOR);
}

struct versions {
    struct table *table;
    json_t *items;
    bool differ;
};

/* Lines of "NAME VERSION", which are modified: returned as an object, and printed to `out` on one
 * line. */
static json_t *version_list_libraries(char *lines, FILE *out)
{
    json_t *object = json_object();
    for (char *line; (line = strsep(&lines, "\n"));) {
        char *version = strchr(line, ' ');
        if (!version)
            continue;
        fprintf(out, "%s%s", json_object_size(object) > 0 ? ", " : "", line);
        *version++ = '\0';
        json_object_set_new(object, line, json_string(version));
    }
    return object;
}

/* libraries is modified. */
static void version_add(struct versions *versions, const char *program, const char *where,
                        const char *release, char *libraries)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    json_t *object = version_list_libraries(libraries, out);
    fclose(out);
    table_add(versions->table, "%s", program);
    table_add(versions->table, "%s", where);
    table_add(versions->table, "%s", release);
    table_add(versions->table, "%s", text);
    json_array_append_new(
        versions->items,
        resource_object("Version", json_pack("{s:s, s:s, s:s, s:o}", "program", program, "where",
                                             where, "release", release, "libraries", object)));
    versions->differ = versions->differ || strcmp(release, GIMBAL_VERSION) != 0;
    free(text);
}

/* Add the output of process_print_libraries(). */
static void version_add_text(struct versions *versions, const char *program, char *text)
{
    char *libraries = text + strcspn(text, "\n");
    if (*libraries)
        *libraries++ = '\0';
    const char *blank = strchr(text, ' ');
    version_add(versions, program, "here", blank ? blank + 1 : text, libraries);
}

static void version_add_this(struct versions *versions)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    process_print_libraries(GIMBAL_VERSION, out);
    fclose(out);
    version_add_text(versions, "gimbal", text);
    free(text);
}

static void version_add_programs(struct versions *versions)
{
    static const char *const programs[] = {"gimbal-coordinator", "gimbal-worker",
                                           "gimbal-executor"};
    static const char *const words[] = {"--versions", NULL};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct error err;
        char *text;
        if (process_ask_text(programs[i], words, NULL, &text, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            continue;
        }
        version_add_text(versions, programs[i], text);
        free(text);
    }
}

static int version_add_coordinator(struct versions *versions, const struct common *common,
                                   struct client *client, struct error *err)
{
    Gimbal__HelloRequest request = GIMBAL__HELLO_REQUEST__INIT;
    ProtobufCMessage *message;
    request.release = GIMBAL_VERSION;
    int code = client_call(client, COORDINATOR_HELLO, &request.base, 0, &message, err);
    if (code != EXIT_DONE)
        return code;
    version_add(versions, "gimbal-coordinator", client_address(common),
                ((const Gimbal__HelloReply *)message)->release, NULL);
    message_free(message);
    return EXIT_DONE;
}

static int version_add_workers(struct versions *versions, struct client *client, struct error *err)
{
    Gimbal__ListNodesReply *reply;
    int code = client_list_nodes(client, &reply, err);
    if (code != EXIT_DONE)
        return code;
    for (size_t i = 0; i < reply->n_nodes; i++)
        if (reply->nodes[i]->hardware)
            version_add(versions, "gimbal-worker", reply->nodes[i]->name,
                        reply->nodes[i]->hardware->release, NULL);
    message_free(&reply->base);
    return EXIT_DONE;
}

static void version_print_all(const struct common *common, struct versions *versions)
{
    enum output output = (enum output)common->output;
    if (output >= OUTPUT_JSON)
        output_print_list(output, "VersionList", "versions", json_incref(versions->items), stdout);
    else
        table_print(versions->table, output, !common->no_headers, stdout);
}

/* What is installed here is shown whether or not a coordinator answers. */
static int version_run_all(const struct common *common, struct error *err)
{
    static const struct column columns[] = {{"PROGRAM"}, {"WHERE"}, {"RELEASE"}, {"LIBRARIES"}};
    struct versions versions = {table_create(columns, 4), json_array(), false};
    struct client client = {0};
    version_add_this(&versions);
    version_add_programs(&versions);
    int code = client_open(common, &client, err);
    if (code == EXIT_DONE)
        code = version_add_coordinator(&versions, common, &client, err);
    if (code == EXIT_DONE)
        code = version_add_workers(&versions, &client, err);
    client_close(&client);
    version_print_all(common, &versions);
    if (code == EXIT_DONE && versions.differ)
        code = error_set(err, EXIT_WARNED,
                         "releases differ: programs of a cluster are meant to be of one");
    table_destroy(versions.table);
    json_decref(versions.items);
    return code;
}

static int version_run(const struct invocation *invocation, struct error *err)
{
    const struct version_values *values = invocation->values;
    if (values && values->all) /* --version has none */
        return version_run_all(&invocation->common, err);
    version_print_own((enum output)invocation->common.output);
    return EXIT_DONE;
}

const struct command command_version = {
    .name = "version",
    .summary = "Print the versions of the program and its protocol, or of everything in reach",
    .arguments = "",
    .flags = version_flags,
    .values_size = sizeof(struct version_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = version_run,
};
