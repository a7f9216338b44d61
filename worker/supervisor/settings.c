/* settings.c - the table of settings, and the command line. */
#include "worker/supervisor/settings.h"

#include "common/base/memory.h"
#include "common/config/state.h"
#include "common/hardware/hardware.h"
#include "common/rpc/address.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define FILE_STANDARD "/etc/gimbal/worker.yaml"

const char worker_usage[] =
    "usage: gimbal-worker [OPTION...]\n"
    "\n"
    "  --name NAME            of this node; else the host's\n"
    "  --coordinator ADDRESS  tcp://HOST:PORT, else tcp://127.0.0.1:7070; or tls+tcp://HOST:PORT\n"
    "  --tls DIR              certificates: the worker's folder of 'gimbal cluster init'\n"
    "  --join FILE            a join token, as 'gimbal cluster token worker' prints it; read only\n"
    "                         where this node has not joined yet\n"
    "  --devices WHAT         N: cut the cores into so many devices; cuda: the NVIDIA devices; "
    "else\n"
    "                         those where there are any, and otherwise 1\n"
    "  --cpuset CORES         use these, as in 0-3,8; else all that this process may use\n"
    "  --share K/N            of those, the K-th of N shares, from 0: for N workers on one host\n"
    "  --memory SIZE          use at most this, as in 16GiB\n"
    "  --host-address IP      where ranks of other nodes reach this one; else the address by "
    "which\n"
    "                         this host reaches the coordinator\n"
    "  --state DIR            keep what must survive the worker there (root: in\n"
    "                         /var/lib/gimbal/worker, others: below ~/.local/state)\n"
    "  --profile-cache DIR    keep what its cores were measured to do there, and use it again for "
    "a\n"
    "                         week; else in profiles below --state\n"
    "  --measure              measure them anew, whatever is kept\n"
    "  --executor PATH        gimbal-executor; else the one beside this program\n"
    "  --fleet N              be N simulated nodes, NAME-0001 and so on, that run nothing: to try\n"
    "                         what a coordinator bears\n"
    "  --log-level LEVEL      debug, info, warn or error\n"
    "  --config FILE          settings, else " FILE_STANDARD "\n"
    "  --check                read the settings, say what is wrong with them, and end\n"
    "  --dry-run              find out what this node would offer, say so, and end: nothing is\n"
    "                         measured, and no coordinator is told\n"
    "  --doctor               look for whatever would keep a worker from working here, and print "
    "it\n"
    "                         as JSON: for 'gimbal doctor'\n"
    "  -h, --help             this text\n"
    "  -V, --version          the release\n"
    "\n"
    "A setting is also read from the environment (GIMBAL_NAME) and from the file (name:).\n";

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};

#define AT(member) .offset = offsetof(struct worker_settings, member)

static const struct field fields[] = {
    {.key = "name", .kind = FIELD_TEXT, AT(name)},
    {.key = "coordinator", .kind = FIELD_TEXT, AT(coordinator), .standard = "tcp://127.0.0.1:7070"},
    {.key = "tls", .kind = FIELD_TEXT, AT(tls)},
    {.key = "join", .kind = FIELD_TEXT, AT(join)},
    {.key = "devices", .kind = FIELD_TEXT, AT(devices)},
    {.key = "cpuset", .kind = FIELD_TEXT, AT(cpuset)},
    {.key = "share", .kind = FIELD_TEXT, AT(share)},
    {.key = "memory", .kind = FIELD_SIZE, AT(memory), .least = 0x1p20, .greatest = 0x1p50},
    {.key = "host_address", .kind = FIELD_TEXT, AT(host_address)},
    {.key = "state", .kind = FIELD_TEXT, AT(state)},
    {.key = "profile_cache", .kind = FIELD_TEXT, AT(profile_cache)},
    {.key = "executor", .kind = FIELD_TEXT, AT(executor)},
    {.key = "fleet",
     .kind = FIELD_INTEGER,
     AT(fleet),
     .standard = "0",
     .greatest = 9999,
     .unit = "nodes"},
    {.key = "log_level", .kind = FIELD_CHOICE, AT(log_level), .standard = "info", .words = levels},
    {.key = NULL},
};

/* --config comes first, wherever it stands: its layer is the lowest. */
static int read_file(int argc, char **argv, struct settings *settings, struct error *err)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            return settings_read_file(settings, argv[i + 1], true, err);
        if (strncmp(argv[i], "--config=", 9) == 0)
            return settings_read_file(settings, argv[i] + 9, true, err);
    }
    return settings_read_file(settings, FILE_STANDARD, false, err);
}

/* --log-level is log_level. */
static int set_flag(struct settings *settings, const char *flag, const char *value,
                    struct error *err)
{
    char *key = xstrdup(flag);
    for (char *dash = key; (dash = strchr(dash, '-'));)
        *dash = '_';
    int rc = settings_set_flag(settings, key, value, err);
    free(key);
    return rc;
}

/* Returns 0 or an exit status. */
static int read_flags(int argc, char **argv, struct settings *settings,
                      struct worker_settings *values, struct error *err)
{
    static const struct option names[] = {
        {"name", required_argument, NULL, 0},          {"coordinator", required_argument, NULL, 0},
        {"devices", required_argument, NULL, 0},       {"cpuset", required_argument, NULL, 0},
        {"share", required_argument, NULL, 0},         {"memory", required_argument, NULL, 0},
        {"executor", required_argument, NULL, 0},      {"log-level", required_argument, NULL, 0},
        {"host-address", required_argument, NULL, 0},  {"state", required_argument, NULL, 0},
        {"profile-cache", required_argument, NULL, 0}, {"fleet", required_argument, NULL, 0},
        {"tls", required_argument, NULL, 0},           {"join", required_argument, NULL, 0},
        {"config", required_argument, NULL, 'c'},      {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},           {"check", no_argument, NULL, 'k'},
        {"dry-run", no_argument, NULL, 'd'},           {"doctor", no_argument, NULL, 'D'},
        {"measure", no_argument, NULL, 'm'},           {NULL, 0, NULL, 0},
    };
    int option, index;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "hV", names, &index)) != -1) {
        if (option == 'h') {
            fputs(worker_usage, stdout);
            exit(EXIT_SUCCESS);
        }
        if (option == 'V') {
            puts("gimbal-worker " GIMBAL_RELEASE);
            exit(EXIT_SUCCESS);
        }
        if (option == '?') {
            error_set(err, 0, "%s is no option, or lacks its value; see --help", argv[optind - 1]);
            return EX_USAGE;
        }
        if (option == 'k')
            values->check = true;
        if (option == 'd')
            values->dry_run = true;
        if (option == 'D')
            values->doctor = true;
        if (option == 'm')
            values->measure = true;
        if (option == 0 && set_flag(settings, names[index].name, optarg, err) < 0)
            return EX_USAGE;
    }
    if (optind == argc)
        return 0;
    error_set(err, 0, "'%s': gimbal-worker takes options only; see --help", argv[optind]);
    return EX_USAGE;
}

static int read_share(struct worker_settings *values, const struct settings *settings,
                      struct error *err)
{
    char rest;
    values->share_count = 1;
    if (!values->share)
        return 0;
    if (sscanf(values->share, "%u/%u%c", &values->share_index, &values->share_count, &rest) == 2 &&
        values->share_index < values->share_count)
        return 0;
    return error_set(err, -EINVAL, "%s: '%s' is no share; write K/N, as in 0/3 for the first of 3",
                     settings_origin(settings, "share"), values->share);
}

/* A count of pieces of the cores, or a kind. */
static int read_devices(struct worker_settings *values, const struct settings *settings,
                        struct error *err)
{
    static const char digits[] = "0123456789", letters[] = "abcdefghijklmnopqrstuvwxyz";
    const char *text = values->devices;
    if (!text || text[strspn(text, letters)] == '\0')
        return 0;
    unsigned long count = text[strspn(text, digits)] == '\0' ? strtoul(text, NULL, 10) : 0;
    if (count < 1 || count > HARDWARE_PIECES_MAX)
        return error_set(err, -EINVAL,
                         "%s: '%s' says no devices: write 1 to %d, to cut the cores into so many, "
                         "or a kind, as cuda",
                         settings_origin(settings, "devices"), text, HARDWARE_PIECES_MAX);
    values->pieces = (unsigned)count;
    return 0;
}

static int complete(struct worker_settings *values, struct error *err)
{
    char text[PATH_MAX];
    if (!values->name) {
        if (gethostname(text, sizeof text) < 0)
            return error_set(err, -errno, "the host has no name: give --name");
        text[sizeof text - 1] = '\0';
        values->name = xstrdup(text);
    }
    if (!values->state)
        values->state = state_folder("worker");
    if (!values->state)
        return error_set(err, -EINVAL, "there is no HOME to keep state in: give --state DIR");
    if (!values->profile_cache)
        values->profile_cache = xasprintf("%s/profiles", values->state);
    if (!hardware_name_valid(values->name))
        return error_set(err, -EINVAL,
                         "'%s' is no name for a node: give --name, 1 to %d letters, digits, '.', "
                         "'-' or '_', a letter or digit first",
                         values->name, HARDWARE_NAME_SIZE - 1);
    struct rpc_address address;
    int rc = rpc_address_parse(values->coordinator, &address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(&address, values->tls != NULL, err);
    if (rc == 0 && values->tls && values->fleet)
        rc = error_set(err, -EINVAL,
                       "a fleet has one name after the other and no credential for any: try it "
                       "without tls");
    return rc < 0 ? error_prefix(err, rc, "coordinator") : 0;
}

int worker_settings_read(int argc, char **argv, struct worker_settings *values,
                         struct settings **out, struct error *err)
{
    *values = (struct worker_settings){0};
    struct settings *settings = settings_create(fields, values);
    int status = 0;
    if (read_file(argc, argv, settings, err) < 0 || settings_read_environment(settings, err) < 0)
        status = EX_CONFIG;
    if (status == 0)
        status = read_flags(argc, argv, settings, values, err);
    if (status == 0 &&
        (settings_check(settings, err) < 0 || read_share(values, settings, err) < 0 ||
         read_devices(values, settings, err) < 0 || complete(values, err) < 0))
        status = EX_CONFIG;
    if (status != 0) {
        settings_destroy(settings);
        return status;
    }
    *out = settings;
    return 0;
}
