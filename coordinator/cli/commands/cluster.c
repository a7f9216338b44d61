/* cluster.c - `gimbal cluster init|token|join|revoke|list`: whom a cluster with TLS trusts; and
 * `backup|restore`: what its coordinator has stored. */
#include "coordinator/cli/admission.h"
#include "coordinator/cli/backup.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit.h"

#include "common/base/memory.h"
#include "common/trust/authority.h"
#include "coordinator/identity/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAYS_STANDARD 365
#define TTL_S_STANDARD 3600.0
#define HOSTS_MAX 34
#define ARGUMENTS_MAX 64

struct cluster_values {
    const char *host, *name, *file;
    int64_t days, uses; /* 0: not given */
    double ttl_s;
    bool renew;
};

#define AT(member) offsetof(struct cluster_values, member)

static const struct flag cluster_flags[] = {
    {"host", 0, FLAG_TEXT, AT(host), "HOSTS",
     "init: names of the coordinator, separated by commas (this host, loopback)"},
    {"days", 0, FLAG_NUMBER, AT(days), "N", "init: how long certificates are valid (365)",
     .least = 1, .greatest = AUTHORITY_DAYS},
    {"renew", 0, FLAG_SWITCH, AT(renew), NULL,
     "init: issue new certificates from the authorities in DIR/ca"},
    {"name", 0, FLAG_TEXT, AT(name), "NAME",
     "token: only for this one, even if it has joined before; join: as (login name)"},
    {"ttl", 0, FLAG_TIME, AT(ttl_s), "TIME", "token: how long it lasts (1h)",
     .greatest = IDENTITY_TTL_MS_MAX / 1000},
    {"uses", 0, FLAG_NUMBER, AT(uses), "N", "token: how many may join with it (1)", .least = 1,
     .greatest = 10000},
    {"file", 0, FLAG_TEXT, AT(file), "FILE",
     "token: write it to a file that only its owner can read"},
    {.name = NULL},
};

/* Split "a,b" into a NULL-terminated array that borrows from text, which is modified. */
static int split_hosts(char *text, const char *hosts[HOSTS_MAX], struct error *err)
{
    size_t count = 0;
    for (char *host; (host = strsep(&text, ","));) {
        if (count + 1 == HOSTS_MAX)
            return error_set(err, EXIT_INPUT, "--host: too many names; at most %d", HOSTS_MAX - 1);
        hosts[count++] = host;
    }
    hosts[count] = NULL;
    return EXIT_DONE;
}

static void say_what_to_do(const char *directory)
{
    fprintf(stderr,
            "%s/coordinator  for gimbal-coordinator --tls DIR\n"
            "%s/worker       for gimbal-worker --tls DIR, on every node\n"
            "%s/user         for gimbal --tls DIR, for everybody who submits jobs\n"
            "%s/admin        for gimbal --tls DIR, for those who drain, revoke and issue tokens\n"
            "%s/ca           signs new certificates: keep it offline, and leave no copy here\n",
            directory, directory, directory, directory, directory);
}

static int init(const struct invocation *invocation, struct error *err)
{
    const struct cluster_values *values = invocation->values;
    char host[256] = "localhost";
    const char *hosts[HOSTS_MAX] = {host, "localhost", "127.0.0.1", "::1", NULL};
    struct authority_options options = {
        .directory = invocation->arguments[1],
        .hosts = hosts,
        .days = values->days ? (unsigned)values->days : DAYS_STANDARD,
        .now_s = (int64_t)time(NULL),
    };
    char *given = values->host ? xstrdup(values->host) : NULL;
    int code = given ? split_hosts(given, hosts, err) : EXIT_DONE;
    if (gethostname(host, sizeof host - 1) < 0)
        snprintf(host, sizeof host, "localhost");
    if (values->renew && !given)
        options.hosts = NULL; /* keep those it has */
    if (code == EXIT_DONE) {
        int rc = values->renew ? authority_renew(&options, err) : authority_create(&options, err);
        code = rc == -EEXIST ? EXIT_PRECONDITION : exit_of_errno(rc);
    }
    if (code == EXIT_DONE && !invocation->common.quiet)
        say_what_to_do(options.directory);
    free(given);
    return code;
}

static int token(const struct invocation *invocation, struct error *err)
{
    const struct cluster_values *values = invocation->values;
    if (values->name && !*values->name)
        return error_set(err, EXIT_USAGE,
                         "--name is empty: leave it out for a token that anybody may use");
    struct admission_token wanted = {
        .role = invocation->arguments[1],
        .name = values->name,
        .ttl_s = values->ttl_s > 0 ? values->ttl_s : TTL_S_STANDARD,
        .uses = values->uses ? values->uses : 1,
        .file = values->file,
    };
    return admission_issue(&invocation->common, &wanted, err);
}

static int join(const struct invocation *invocation, struct error *err)
{
    const struct cluster_values *values = invocation->values;
    return admission_join(&invocation->common, invocation->arguments[1], values->name, err);
}

static int revoke_name(const struct invocation *invocation, struct error *err)
{
    return admission_revoke(&invocation->common, invocation->arguments[1], invocation->arguments[2],
                            err);
}

static int list(const struct invocation *invocation, struct error *err)
{
    return admission_list(&invocation->common, err);
}

static int backup(const struct invocation *invocation, struct error *err)
{
    return backup_fetch(&invocation->common, invocation->arguments[1], err);
}

static int restore(const struct invocation *invocation, struct error *err)
{
    return backup_restore(invocation->arguments + 1, invocation->argument_count - 1, err);
}

enum { OF_INIT = 1, OF_TOKEN = 2, OF_JOIN = 4 };

static const struct subcommand {
    const char *name;
    const char *arguments; /* after its name */
    int argument_count, argument_max;
    unsigned flags; /* flags that it uses */
    int (*run)(const struct invocation *invocation, struct error *err);
} subcommands[] = {
    {"init", "DIR", 1, 1, OF_INIT, init},
    {"token", "worker|user", 1, 1, OF_TOKEN, token},
    {"join", "TOKEN-FILE", 1, 1, OF_JOIN, join},
    {"revoke", "worker|user NAME", 2, 2, 0, revoke_name},
    {"list", "", 0, 0, 0, list},
    {"backup", "FILE", 1, 1, 0, backup},
    {"restore", "FILE [-- FLAGS OF GIMBAL-COORDINATOR]", 1, ARGUMENTS_MAX - 1, 0, restore},
};
#define SUBCOMMANDS (sizeof subcommands / sizeof *subcommands)

/* Refuse flags that would have no effect. */
static int check_flags(const struct subcommand *subcommand, const struct invocation *invocation,
                       struct error *err)
{
    const struct cluster_values *values = invocation->values;
    const struct {
        const char *name;
        bool given;
        unsigned of;
    } flags[] = {
        {"host", values->host, OF_INIT},      {"days", values->days, OF_INIT},
        {"renew", values->renew, OF_INIT},    {"name", values->name, OF_TOKEN | OF_JOIN},
        {"ttl", values->ttl_s > 0, OF_TOKEN}, {"uses", values->uses, OF_TOKEN},
        {"file", values->file, OF_TOKEN},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].given && !(flags[i].of & subcommand->flags))
            return error_set(err, EXIT_USAGE, "%s does not take --%s", subcommand->name,
                             flags[i].name);
    return EXIT_DONE;
}

static int run(const struct invocation *invocation, struct error *err)
{
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        const struct subcommand *subcommand = &subcommands[i];
        if (strcmp(subcommand->name, invocation->arguments[0]) != 0)
            continue;
        if (invocation->argument_count < 1 + subcommand->argument_count ||
            invocation->argument_count > 1 + subcommand->argument_max)
            return error_set(err, EXIT_USAGE, "usage: gimbal cluster %s %s", subcommand->name,
                             subcommand->arguments);
        int code = check_flags(subcommand, invocation, err);
        return code == EXIT_DONE ? subcommand->run(invocation, err) : code;
    }
    return error_set(err, EXIT_USAGE,
                     "'%s' is not one of init, token, join, revoke, list, backup, restore",
                     invocation->arguments[0]);
}

const struct command command_cluster = {
    .name = "cluster",
    .summary = "Set up TLS, manage who may join, back up the coordinator: init, token, join, "
               "revoke, list, backup, restore",
    .arguments = "init DIR | token worker|user | join TOKEN-FILE | revoke worker|user NAME | list "
                 "| backup FILE | restore FILE [-- FLAGS OF GIMBAL-COORDINATOR]",
    .words = "init token join revoke list backup restore",
    .arguments_min = 1,
    .arguments_max = ARGUMENTS_MAX,
    .flags = cluster_flags,
    .values_size = sizeof(struct cluster_values),
    .takes = TAKES_OUTPUT | TAKES_ADDRESS | TAKES_TIMEOUT,
    .run = run,
};
