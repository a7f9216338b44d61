/* jobfile.c - a job file as text and as a checked job. */
#include "coordinator/cli/jobfile.h"

#include "common/base/file.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/filekind.h"
#include "coordinator/planner/planner.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int jobfile_path(const struct invocation *invocation, const char **file, struct error *err)
{
    if (invocation->argument_count == 0)
        return EXIT_DONE;
    if (*file)
        return error_set(err, EXIT_USAGE, "'%s' is a second job file, besides -f %s",
                         invocation->arguments[0], *file);
    *file = invocation->arguments[0];
    return EXIT_DONE;
}

int jobfile_refuse_plan(const char *text, const char *name, struct error *err)
{
    bool is_plan = filekind_of(text) == FILE_PLAN;
    return is_plan && filekind_explain(text, name, FILE_JOB, err) ? EXIT_USAGE : EXIT_DONE;
}

int jobfile_load(const char *path, char **text, struct job_config **job, struct error *err)
{
    if (!path)
        return error_set(err, EXIT_USAGE, "needs a job file: -f job.yaml");
    bool standard = strcmp(path, "-") == 0;
    char *content = NULL;
    int rc = standard ? file_read_open(STDIN_FILENO, "standard input", &content, err)
                      : file_read(path, &content, err);
    if (rc < 0 || !content)
        return exit_of_errno(rc);
    return jobfile_take(content, standard ? "standard input" : path, text, job, err);
}

int jobfile_take(char *content, const char *name, char **text, struct job_config **job,
                 struct error *err)
{
    struct job_config *config = NULL;
    int rc = job_config_parse(content, strlen(content), name, &config, err);
    if (rc == 0) {
        rc = planner_check(config, err);
        if (rc < 0)
            job_config_place(content, strlen(content), name, err);
    }
    if (rc < 0) {
        bool is_other = filekind_explain(content, name, FILE_JOB, err);
        job_config_destroy(config);
        free(content);
        return is_other ? EXIT_USAGE : EXIT_INPUT;
    }
    *text = content;
    *job = config;
    return EXIT_DONE;
}
