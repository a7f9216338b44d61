/* filekind.h - tells files apart that are mistaken for each other: jobs, clusters and plans. */
#ifndef COORDINATOR_CLI_FILEKIND_H
#define COORDINATOR_CLI_FILEKIND_H

#include "common/base/error.h"

#include <stdbool.h>

enum file_kind { FILE_OTHER, FILE_JOB, FILE_CLUSTER, FILE_PLAN };

/* What the text seems to be, whether or not it is right in all its parts. */
enum file_kind filekind_of(const char *text);
/* For a text that cannot be read as what was wanted: if it is of another kind, say so, and where
 * that is given; otherwise false, and err stays as it is. */
bool filekind_explain(const char *text, const char *name, enum file_kind wanted, struct error *err);

#endif
