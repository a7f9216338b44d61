/* doctor.h - what was looked at, what was found there, and what would be right.
 *
 * A check is a row of somebody's table: it looks at one thing and adds a finding for all that it
 * has seen there, also where all is well. It changes nothing that it looks at. */
#ifndef COMMON_DOCTOR_DOCTOR_H
#define COMMON_DOCTOR_DOCTOR_H

#include "common/base/error.h"

#include <jansson.h>
#include <stddef.h>

enum verdict {
    VERDICT_OK,
    VERDICT_WARNING,  /* something will be slow, small, or wrong one day */
    VERDICT_BLOCKING, /* a worker will not start, or no job will run */
};

/* "ok", "warning", "blocking" */
const char *verdict_name(enum verdict verdict);

/* Texts are its own. */
struct finding {
    char *check, *about; /* of the row: "state", "the folder for what must survive" */
    enum verdict verdict;
    char *found; /* a sentence with the numbers */
    char *right; /* the setting or the command that would be; NULL where all is well */
};

struct findings {
    struct finding *items;
    size_t count, capacity;
    const char *check, *about; /* of what is added now; lent */
};

struct doctor_check {
    const char *name, *about;
    /* What it looks at is the table's own kind of scene. */
    void (*cb)(void *scene, struct findings *out);
};

/* All rows, in order; the last is NULL. */
void doctor_run(const struct doctor_check *const *checks, void *scene, struct findings *out);

void finding_ok(struct findings *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* right is copied. */
void finding_warn(struct findings *out, const char *right, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_block(struct findings *out, const char *right, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The worst of them; VERDICT_OK where there are none. */
enum verdict findings_worst(const struct findings *findings);
void findings_finish(struct findings *findings); /* accepts a zeroed one */

/* [{"check", "about", "verdict", "found", "right": TEXT or null}]; the caller's. */
json_t *findings_to_json(const struct findings *findings);
/* Add what another process has written so. -EINVAL: it is something else. */
int findings_add_json(struct findings *findings, const json_t *json, struct error *err);

#endif
