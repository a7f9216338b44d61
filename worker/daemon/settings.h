/* settings.h - what a worker is told: by flags, environment and a file. */
#ifndef WORKER_DAEMON_SETTINGS_H
#define WORKER_DAEMON_SETTINGS_H

#include "common/base/error.h"
#include "common/config/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct worker_settings {
    char *name;        /* of the node; the host's where none is given */
    char *coordinator; /* tcp://HOST:PORT, tls+tcp://HOST:PORT */
    char *tls;         /* folder of the bundle; NULL: without TLS */
    char *join;        /* file of a join token; NULL: none */
    char *devices;     /* "2", "cuda"; NULL: whatever there is */
    unsigned pieces;   /* of that, where it says so, devices to cut the cores into; else 0 */
    char *cpuset;      /* "0-3,8"; NULL: all cores that the process may use */
    char *share;       /* "0/3" */
    unsigned share_index, share_count;
    uint64_t memory;    /* bytes; 0: what goes with the cores */
    char *host_address; /* where other nodes reach this one; NULL: as route_address() says */
    char *state; /* folder for what must survive the worker; state_folder() if none is given */
    char *profile_cache; /* folder of what cores were measured to do; below state where none is */
    char *executor;      /* its path; the one beside this program where none is given */
    int64_t fleet;       /* be so many simulated nodes; 0: be one that works */
    int log_level;       /* an enum log_level */
    bool check;          /* only look at the settings, and end */
    bool show;           /* only print them, and where they are from, and end */
    bool dry_run;        /* ... and at the machine */
    bool doctor;         /* ... and at all that a worker needs of it */
    bool measure;        /* the cores, whatever was kept of them */
};

extern const char worker_usage[];

/* Read all layers; *out owns what values holds. Returns 0, or the exit status to leave with: the
 * sentence is in err. For --help and --version, prints and leaves. */
int worker_settings_read(int argc, char **argv, struct worker_settings *values,
                         struct settings **out, struct error *err);

#endif
