/* api.c - questions in, JSON out. */
#include "coordinator/api.h"

#include "coordinator/service/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_STANDARD 100
#define EVENTS_MAX 1000

/* Takes the object. */
static int give(json_t *object, char **out, size_t *size)
{
    *out = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15));
    *size = strlen(*out);
    json_decref(object);
    return 0;
}

int api_nodes(void *service, const struct web_question *question, char **out, size_t *size,
              struct error *err)
{
    json_t *list;
    (void)question, (void)err;
    service_list_nodes(service, &list);
    return give(list, out, size);
}

int api_node(void *service, const struct web_question *question, char **out, size_t *size,
             struct error *err)
{
    json_t *node;
    int rc = service_show_node(service, web_rest(question), &node, err);
    return rc < 0 ? rc : give(node, out, size);
}

int api_jobs(void *service, const struct web_question *question, char **out, size_t *size,
             struct error *err)
{
    json_t *list;
    (void)question, (void)err;
    service_list_jobs(service, &list);
    return give(list, out, size);
}

/* "j-1/timeline" */
static bool is_timeline(const char *rest, char *job, size_t size)
{
    static const char end[] = "/timeline";
    size_t length = strlen(rest), tail = sizeof end - 1;
    if (length <= tail || strcmp(rest + length - tail, end) != 0)
        return false;
    snprintf(job, size, "%.*s", (int)(length - tail), rest);
    return true;
}

int api_job(void *service, const struct web_question *question, char **out, size_t *size,
            struct error *err)
{
    char id[128];
    json_t *job;
    int rc = is_timeline(web_rest(question), id, sizeof id)
                 ? service_show_timeline(service, id, &job, err)
                 : service_show_job(service, web_rest(question), &job, err);
    return rc < 0 ? rc : give(job, out, size);
}

/* Where it is there: a whole number that is not beyond. */
static int read_count(const struct web_question *question, const char *name, uint64_t least,
                      uint64_t most, uint64_t *value, struct error *err)
{
    const char *text = web_parameter(question, name);
    char *end;
    if (!text)
        return 0;
    errno = 0;
    uintmax_t number = strtoumax(text, &end, 10);
    if (text[strspn(text, "0123456789")] || end == text || errno || number < least || number > most)
        return error_set(err, -EINVAL,
                         "%s: '%.32s' is no whole number from %" PRIu64 " to %" PRIu64, name, text,
                         least, most);
    *value = number;
    return 0;
}

static const char *text_of(const struct web_question *question, const char *name)
{
    const char *text = web_parameter(question, name);
    return text ? text : "";
}

int api_events(void *service, const struct web_question *question, char **out, size_t *size,
               struct error *err)
{
    json_t *list;
    struct store_query query = {.job = text_of(question, "job"),
                                .node = text_of(question, "node"),
                                .newest = !web_parameter(question, "after")};
    uint64_t limit = EVENTS_STANDARD, steps = 0;
    int rc = read_count(question, "after", 0, INT64_MAX, &query.after, err);
    if (rc == 0)
        rc = read_count(question, "limit", 1, EVENTS_MAX, &limit, err);
    if (rc == 0)
        rc = read_count(question, "steps", 0, 1, &steps, err);
    if (rc < 0)
        return rc;
    query.count_max = limit;
    query.except = steps ? NULL : "step";
    rc = service_list_events(service, &query, &list, err);
    return rc < 0 ? rc : give(list, out, size);
}
