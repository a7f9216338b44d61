/* settings.h - what a worker is told: by flags, environment and a file. */
#ifndef WORKER_SUPERVISOR_SETTINGS_H
#define WORKER_SUPERVISOR_SETTINGS_H

#include "common/base/error.h"
#include "common/config/settings.h"

#include <stdint.h>

struct worker_settings {
    char *name;        /* of the node; the host's where none is given */
    char *coordinator; /* tcp://HOST:PORT */
    int64_t devices;   /* CPU devices to offer */
    char *cpuset;      /* "0-3,8"; NULL: all cores that the process may use */
    char *share;       /* "0/3" */
    unsigned share_index, share_count;
    uint64_t memory; /* bytes; 0: what goes with the cores */
    char *executor;  /* its path; the one beside this program where none is given */
    int log_level;   /* an enum log_level */
};

extern const char worker_usage[];

/* Read all layers; *out owns what values holds. Returns 0, or the exit status to leave with: the
 * sentence is in err. For --help and --version, prints and leaves. */
int worker_settings_read(int argc, char **argv, struct worker_settings *values,
                         struct settings **out, struct error *err);

#endif
