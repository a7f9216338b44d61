/* settings.h - the coordinator's settings: its table, and its command line. */
#ifndef COORDINATOR_SETTINGS_H
#define COORDINATOR_SETTINGS_H

#include "common/base/log.h"
#include "common/config/settings.h"

struct coordinator_settings {
    char *address;      /* tcp://HOST:PORT or tls+tcp://HOST:PORT; port 0: a free one */
    char *address_file; /* the real address is written here; NULL: nowhere */
    char *state;        /* folder of the store; NULL: state_folder() */
    double heartbeat;   /* seconds between a worker's heartbeats */
    double dead_after;  /* seconds of silence until it is lost */
    enum log_level log_level;
    char *tls;         /* folder of the bundle; NULL: without TLS */
    bool drills;       /* faults may be ordered */
    char *join_tokens; /* file of tokens agreed upon beforehand; NULL: none */
    char *http;        /* HOST:PORT of pages for who watches; NULL: none */
    char *http_token;  /* file of what is to be shown there; NULL: nothing is */
};

extern const struct field coordinator_fields[];

/* What the command line asks for. */
enum coordinator_command {
    COORDINATOR_RUN,
    COORDINATOR_CHECK,   /* the settings only */
    COORDINATOR_SHOW,    /* the settings, and where they are from */
    COORDINATOR_RESTORE, /* the store, from the file that the line names */
    COORDINATOR_HELP,
    COORDINATOR_VERSION,
    COORDINATOR_VERSIONS, /* of libraries, too */
};

/* What the command line asks for, and the file that it is about, lent by argv, or NULL. */
struct coordinator_line {
    enum coordinator_command command;
    const char *backup;
};

/* Read all layers into values, which settings owns the texts of. -EINVAL with words: *usage says
 * whether it is the command line that is wrong. */
int coordinator_settings_read(struct settings *settings, int argc, char **argv,
                              struct coordinator_line *asked, bool *usage, struct error *err);

#endif
