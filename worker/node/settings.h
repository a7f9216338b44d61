/* settings.h - the worker's settings, from flags, environment and a file. */
#ifndef WORKER_NODE_SETTINGS_H
#define WORKER_NODE_SETTINGS_H

#include "common/base/error.h"
#include "common/config/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct worker_settings {
    char *name;        /* of the node; default: the host's name */
    char *coordinator; /* tcp://HOST:PORT or tls+tcp://HOST:PORT */
    char *tls;         /* folder of the certificates; NULL: no TLS */
    char *join;        /* file with a join token; NULL: none */
    char *devices;     /* "2", "cuda"; NULL: whatever there is */
    /* From `devices`: how many devices to divide the cores into; 0: it is not a number. */
    unsigned pieces;
    char *cpuset; /* "0-3,8"; NULL: all cores that the process may use */
    char *share;  /* "0/3"; NULL: 0/1 */
    unsigned share_index, share_count;
    uint64_t memory;     /* bytes; 0: in proportion to the cores */
    char *host_address;  /* where other nodes reach this one; NULL: see network_source() */
    char *state;         /* folder for what must survive the worker; default: state_folder() */
    char *profile_cache; /* folder for measurements of cores; default: below `state` */
    char *executor;      /* path; NULL: beside this program */
    int64_t fleet;       /* number of nodes to simulate; 0: be a real one */
    int log_level;       /* an enum log_level */
    bool check;          /* only look at the settings, and end */
    bool show;           /* only print them, and where they are from, and end */
    bool dry_run;        /* ... and at the machine */
    bool doctor;         /* ... and at all that a worker needs of it */
    bool measure;        /* the cores, whatever was kept of them */
};

/* Read all layers. *out owns the strings in *values. Returns 0, or the exit status with the reason
 * in err. --help and --version print and exit. */
int worker_settings_read(int argc, char **argv, struct worker_settings *values,
                         struct settings **out, struct error *err);

#endif
