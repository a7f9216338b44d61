/* galvatron_recorded.c - finds recorded plans, and reads them with their profiles. */
#include "tests/coordinator/planner/galvatron_recorded.h"

#include "common/base/memory.h"

#include <check.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

static const char *folder_of(int which)
{
    return which == 0 ? GALVATRON_DATA : getenv("GIMBAL_TEST_GALVATRON");
}

/* The file of that index in both folders, owned by the caller; NULL: there are only *index fewer.
 */
static char *find(int *index)
{
    char *found = NULL;
    for (int which = 0; which < 2 && !found && folder_of(which); which++) {
        glob_t files = {0};
        char *pattern = xasprintf("%s/recorded/*.json", folder_of(which));
        glob(pattern, 0, NULL, &files);
        if ((size_t)*index < files.gl_pathc)
            found = xstrdup(files.gl_pathv[*index]);
        else
            *index -= (int)files.gl_pathc;
        globfree(&files);
        free(pattern);
    }
    return found;
}

int recorded_count(void)
{
    int most = 1 << 20, left = most;
    free(find(&left));
    return most - left;
}

struct recorded recorded_read(int index)
{
    struct recorded out = {.path = find(&index)};
    struct error err = {0};
    ck_assert_ptr_nonnull(out.path);
    char *folder = xstrdup(out.path);
    *strstr(folder, "/recorded/") = '\0';
    out.problem.spec = galvatron_spec_default();
    int rc = galvatron_spec_read(out.path, &out.problem.spec, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    char *model = xasprintf("%s/models/%s", folder, out.problem.spec.model);
    char *machines = xasprintf("%s/hardware", folder);
    rc = galvatron_load(model, machines, &out.problem.spec, &out.problem.profile, &err);
    if (rc == 0)
        rc = galvatron_plan_read(out.path, &out.problem.spec, &out.plan, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    out.root = json_load_file(out.path, 0, NULL);
    out.figures = json_object_get(out.root, "recorded");
    ck_assert_ptr_nonnull(out.figures);
    free(machines);
    free(model);
    free(folder);
    return out;
}

void recorded_finish(struct recorded *recorded)
{
    galvatron_plan_finish(&recorded->plan);
    json_decref(recorded->root);
    free(recorded->path);
}

bool recorded_is_theirs(const struct recorded *recorded)
{
    return strncmp(recorded->path, GALVATRON_DATA, strlen(GALVATRON_DATA)) != 0;
}
