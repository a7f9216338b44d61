/* settings.c - the table of settings, and the command line. */
#include "worker/node/settings.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/process.h"
#include "common/config/folders.h"
#include "common/hardware/hardware.h"
#include "common/rpc/address.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define FILE_STANDARD "/etc/gimbal/worker.yaml"

static const struct field fields[] = {
    {FIELD(worker_settings, name, FIELD_TEXT), .value = "NAME",
     .about = "the node's name (the host's)"},
    {FIELD(worker_settings, coordinator, FIELD_TEXT), .standard = "tcp://127.0.0.1:7070",
     .variable = "GIMBAL_ADDRESS", .value = "ADDRESS",
     .about = "tcp://HOST:PORT or tls+tcp://HOST:PORT (GIMBAL_ADDRESS, as of 'gimbal')"},
    {FIELD(worker_settings, tls, FIELD_TEXT), .value = "DIR",
     .about = "certificates: the worker's folder from 'gimbal cluster init'"},
    {FIELD(worker_settings, join, FIELD_TEXT), .value = "FILE",
     .about = "a join token from 'gimbal cluster token worker'; read only if this node has not "
              "joined yet"},
    {FIELD(worker_settings, devices, FIELD_TEXT), .value = "WHAT",
     .about = "N: divide the cores into N devices; cuda: the NVIDIA devices; by default the NVIDIA "
              "devices if there are any, else all cores as one"},
    {FIELD(worker_settings, cpuset, FIELD_TEXT), .value = "CORES",
     .about = "the cores to use, such as 0-3,8 (all that this process may use)"},
    {FIELD(worker_settings, share, FIELD_TEXT), .value = "K/N",
     .about = "the K-th of N shares of them, from 0: for N workers a host"},
    {FIELD(worker_settings, memory, FIELD_SIZE), .least = 0x1p20, .greatest = 0x1p50,
     .value = "SIZE", .about = "use at most this much, such as 16GiB"},
    {FIELD(worker_settings, host_address, FIELD_TEXT), .value = "IP",
     .about = "where ranks on other nodes reach this one (the address from which this host reaches "
              "the coordinator)"},
    {FIELD(worker_settings, state, FIELD_TEXT), .value = "DIR",
     .about = "keep what must survive the worker in DIR (root: /var/lib/gimbal/worker, others: "
              "below ~/.local/state)"},
    {FIELD(worker_settings, profile_cache, FIELD_TEXT), .value = "DIR",
     .about = "keep measurements of the cores in DIR, and use them for a week (in profiles below "
              "--state)"},
    {FIELD(worker_settings, executor, FIELD_TEXT), .value = "PATH",
     .about = "gimbal-executor (the one in the folder of this program)"},
    {FIELD(worker_settings, fleet, FIELD_INTEGER), .standard = "0", .greatest = 9999,
     .unit = "nodes", .value = "N",
     .about = "simulate N nodes, NAME-0001 and so on, that run nothing: to see how many a "
              "coordinator can handle"},
    {FIELD(worker_settings, log_level, FIELD_CHOICE), .standard = "info", .words = log_level_names,
     .value = "LEVEL", .about = "debug, info, warn or error"},
    {.key = NULL},
};

/* What the line says besides settings. */
struct line {
    const char *file;
    bool help, version, versions, check, show, dry_run, doctor, measure;
};

#define LINE(member, what) .kind = what, .offset = offsetof(struct line, member)

static const struct flag line_flags[] = {
    {"measure", 0, LINE(measure, FLAG_SWITCH), .help = "measure the cores again, whatever is kept"},
    {"config", 0, LINE(file, FLAG_TEXT), .value = "FILE",
     .help = "the settings file (" FILE_STANDARD ", if it exists)"},
    {"check", 0, LINE(check, FLAG_SWITCH),
     .help = "read the settings, report what is wrong with them, and exit"},
    {"show", 0, LINE(show, FLAG_SWITCH),
     .help = "print each setting and where it is from, and exit"},
    {"dry-run", 0, LINE(dry_run, FLAG_SWITCH),
     .help = "print what this node would offer, and exit; nothing is measured, and no coordinator "
             "is contacted"},
    {"doctor", 0, LINE(doctor, FLAG_SWITCH),
     .help = "check whether a worker could work here, print the findings as JSON for 'gimbal "
             "doctor', and exit"},
    {"help", 'h', LINE(help, FLAG_SWITCH), .help = "print this text"},
    {"version", 'V', LINE(version, FLAG_SWITCH), .help = "print the version"},
    {"versions", 0, LINE(versions, FLAG_SWITCH),
     .help = "print the version, and those of libraries"},
    {.name = NULL},
};

static void worker_print_help(const struct settings *settings)
{
    puts("usage: gimbal-worker [FLAG...]\n"
         "Offers the devices of a node, and runs jobs on them.\n");
    settings_print_help(settings, line_flags, stdout);
    puts(
        "\nEach setting may also be a key of the file (host_address: IP) or an environment "
        "variable\n"
        "(GIMBAL_HOST_ADDRESS=IP). Flags take precedence over variables, variables over the file.");
}

/* What only prints ends here. */
static int read_line(int argc, char **argv, struct settings *settings, struct line *line,
                     struct error *err)
{
    const char *argument;
    int rc = settings_read_line(settings, line_flags, line, argc, argv, &argument, err);
    if (rc < 0)
        return rc;
    if (line->help)
        worker_print_help(settings);
    else if (line->version)
        puts("gimbal-worker " GIMBAL_RELEASE);
    else if (line->versions)
        process_print_libraries(GIMBAL_RELEASE, stdout);
    if (line->help || line->version || line->versions)
        exit(EXIT_SUCCESS);
    return argument ? error_set(err, -EINVAL, "'%s': gimbal-worker takes options only; see --help",
                                argument)
                    : 0;
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
    return error_set(err, -EINVAL,
                     "%s: '%s' is not a share: write K/N, such as 0/3 for the first of 3",
                     settings_origin(settings, "share"), values->share);
}

/* A number of devices to divide the cores into, or a kind of device. */
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
                         "%s: '%s' does not name devices: write 1 to %d, to divide the cores into "
                         "that many, or a kind, such as cuda",
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
        return error_set(err, -EINVAL,
                         "HOME is not set: name a folder for the state with --state DIR");
    if (!values->profile_cache)
        values->profile_cache = xasprintf("%s/profiles", values->state);
    if (!text_is_name(values->name))
        return error_set(err, -EINVAL,
                         "'%s' cannot be a node's name: give --name, 1 to %d letters, digits, '.', "
                         "'-' or '_', starting with a letter or digit",
                         values->name, HARDWARE_NAME_SIZE - 1);
    struct rpc_address address;
    int rc = rpc_address_parse(values->coordinator, &address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(&address, values->tls != NULL, err);
    if (rc == 0 && values->tls && values->fleet)
        rc = error_set(err, -EINVAL,
                       "the nodes of a fleet have names, but no credentials: try it without tls");
    return rc < 0 ? error_prefix(err, rc, "coordinator") : 0;
}

/* All layers; an exit status. */
static int read_layers(int argc, char **argv, struct worker_settings *values,
                       struct settings *settings, struct error *err)
{
    struct line line = {0};
    if (read_line(argc, argv, settings, &line, err) < 0)
        return EX_USAGE;
    values->check = line.check;
    values->show = line.show;
    values->dry_run = line.dry_run;
    values->doctor = line.doctor;
    values->measure = line.measure;
    const char *file = line.file ? line.file : FILE_STANDARD;
    if (settings_read_file(settings, file, line.file != NULL, err) < 0 ||
        settings_read_environment(settings, err) < 0)
        return EX_CONFIG;
    return settings_read_flags(settings, err) < 0 ? EX_USAGE : 0;
}

int worker_settings_read(int argc, char **argv, struct worker_settings *values,
                         struct settings **out, struct error *err)
{
    *values = (struct worker_settings){0};
    struct settings *settings = settings_create(fields, values);
    int status = read_layers(argc, argv, values, settings, err);
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
