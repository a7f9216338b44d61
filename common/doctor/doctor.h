/* doctor.h - diagnostic checks, and their findings: what was found and how to fix it.
 *
 * A check examines one thing and adds findings for everything it has seen, including what is fine.
 * It changes nothing that it examines. Callers bring their own tables of checks. */
#ifndef COMMON_DOCTOR_DOCTOR_H
#define COMMON_DOCTOR_DOCTOR_H

#include "common/base/error.h"

#include <jansson.h>
#include <stddef.h>

enum verdict {
    VERDICT_OK,
    VERDICT_WARNING,  /* something will be slow or limited, or will fail one day */
    VERDICT_BLOCKING, /* a worker will not start, or no job will run */
};

/* "ok", "warning", "blocking" */
const char *verdict_name(enum verdict verdict);

/* Owns its texts. */
struct finding {
    char *check, *about; /* from the table of checks: "state", "the folder for what must survive" */
    enum verdict verdict;
    char *found; /* what was found: a sentence with the figures */
    char *right; /* the setting or command that would mend it; NULL if all is well */
};

struct findings {
    struct finding *items;
    size_t count, capacity;
    const char *check, *about; /* given to findings added from now on; borrowed */
};

struct doctor_check {
    const char *name, *about;
    /* `scene` is what the checks of the table have in common; its type is up to the table. */
    void (*cb)(void *scene, struct findings *out);
};

/* Run all checks in order; `checks` ends with NULL. */
void doctor_run(const struct doctor_check *const *checks, void *scene, struct findings *out);

/* Add a finding of the check that is running. `right` says how to mend it, and is copied. */
void finding_ok(struct findings *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_warn(struct findings *out, const char *right, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_block(struct findings *out, const char *right, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The worst verdict; VERDICT_OK without findings. */
enum verdict findings_worst(const struct findings *findings);
void findings_finish(struct findings *findings); /* accepts a zeroed one */

/* [{"check", "about", "verdict", "found", "right": TEXT or null}], owned by the caller. */
json_t *findings_to_json(const struct findings *findings);
/* Add findings from such JSON, written by another process. -EINVAL when it is something else. */
int findings_add_json(struct findings *findings, const json_t *json, struct error *err);

#endif
