/* settings.h - the coordinator's settings: its table, and its command line. */
#ifndef COORDINATOR_SETTINGS_H
#define COORDINATOR_SETTINGS_H

#include "common/base/log.h"
#include "common/config/settings.h"

/* How long jobs that have ended are kept. */
struct coordinator_retention {
    int64_t jobs; /* the newest so many */
    double age;   /* seconds since they ended; 0: however old */
};

struct coordinator_settings {
    char *address;      /* tcp://HOST:PORT or tls+tcp://HOST:PORT; port 0: a free one */
    char *address_file; /* file that the actual address is written to; NULL: none */
    char *state;        /* directory of the store; NULL: state_folder() */
    char *checkpoints;  /* folder below which jobs are saved that name none; see settings.c */
    double heartbeat;   /* seconds between a worker's heartbeats */
    double dead_after;  /* seconds of silence after which it is lost */
    enum log_level log_level;
    char *tls;         /* directory of the certificate bundle; NULL: no TLS */
    bool drills;       /* faults may be ordered, see `gimbal drill` */
    char *join_tokens; /* file of pre-arranged join tokens; NULL: none */
    char *http;        /* HOST:PORT to serve pages at; NULL: none */
    char *http_token;  /* file with the token required there; NULL: none */
    struct coordinator_retention retention;
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

void coordinator_print_help(const struct settings *settings, FILE *out);

/* Read all layers of settings into values, whose texts are owned by `settings`. -EINVAL with a
 * message; *usage tells whether the command line is at fault. */
int coordinator_settings_read(struct settings *settings, int argc, char **argv,
                              struct coordinator_line *asked, bool *usage, struct error *err);

#endif
