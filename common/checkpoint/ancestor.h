/* ancestor.h - the checkpoint that a job goes on from, written by another job or by another start
 * of it: which one that is, and how the job that goes on differs from the one that wrote it.
 *
 * It may have another plan, other data, another learning rate, more steps: whatever its job file
 * says is followed, and each difference is told before the first step. It has to have the same
 * model: tensors of the same names and shapes, which compute the same. */
#ifndef COMMON_CHECKPOINT_ANCESTOR_H
#define COMMON_CHECKPOINT_ANCESTOR_H

#include "common/checkpoint/manifest.h"
#include "common/config/job.h"

#include <stdbool.h>

struct ancestor {
    char *folder;           /* of the checkpoint */
    char *spec;             /* text of the job file it was written under; NULL: unknown */
    uint64_t step, samples; /* finished and used there: where the job goes on */
    bool weights_only;      /* it begins at step 0 with these weights, and nothing else of it */
};

/* Find the checkpoint that a folder is, or the newest of those in it. *out is its path, the
 * caller's to free. -ENOENT: it is none and has none. */
int ancestor_find(const char *folder, char **out, struct error *err);
/* Read what a checkpoint says of itself. The caller finishes *out, and *manifest, which may be
 * NULL. Errors of manifest_read(). */
int ancestor_read(const char *folder, bool weights_only, struct ancestor *out,
                  struct manifest *manifest, struct error *err);
/* Accepts a zeroed struct. */
void ancestor_finish(struct ancestor *ancestor);

/* Compare a job, and its model as a graph, with an ancestor. `manifest` has its tensors;
 * NULL: they are those of the model in its spec. Appends a line for every field that differs to
 * *differences, which the caller frees with ancestor_forget(). -EINVAL: it is another model, err
 * says in what. */
int ancestor_compare(const struct ancestor *ancestor, const struct manifest *manifest,
                     const struct job_config *job, const struct graph *graph,
                     struct texts *differences, struct error *err);
void ancestor_forget(struct texts *differences);
/* Compare what it learns from, file by file, with what an ancestor did: a job file may name the
 * same path for other contents. Appends a line for the first difference, unless that is not known.
 */
void ancestor_compare_files(const struct manifest *manifest, const struct manifest_file *files,
                            size_t count, struct texts *differences);
/* Whether steps are left to train; -EINVAL if the job ends where it would begin. */
int ancestor_leaves(const struct ancestor *ancestor, const struct job_config *job,
                    struct error *err);

#endif
