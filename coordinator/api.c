/* api.c - turns requests into JSON. */
#include "coordinator/api.h"

#include "common/base/memory.h"
#include "coordinator/service/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_STANDARD 100
#define EVENTS_MAX 1000

#define JSON_FORMAT (JSON_COMPACT | JSON_REAL_PRECISION(15))

/* Takes ownership of the object. */
static int give(json_t *object, char **out, size_t *size)
{
    *out = json_dumps(object, JSON_FORMAT);
    *size = strlen(*out);
    json_decref(object);
    return 0;
}

int api_nodes(void *service, const struct web_request *request, char **out, size_t *size,
              struct error *err)
{
    json_t *list;
    (void)request, (void)err;
    service_list_nodes(service, &list);
    return give(list, out, size);
}

int api_node(void *service, const struct web_request *request, char **out, size_t *size,
             struct error *err)
{
    json_t *node;
    int rc = service_show_node(service, web_rest(request), &node, err);
    return rc < 0 ? rc : give(node, out, size);
}

int api_jobs(void *service, const struct web_request *request, char **out, size_t *size,
             struct error *err)
{
    json_t *list;
    (void)request, (void)err;
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

int api_job(void *service, const struct web_request *request, char **out, size_t *size,
            struct error *err)
{
    char id[128];
    json_t *job;
    int rc = is_timeline(web_rest(request), id, sizeof id)
                 ? service_show_timeline(service, id, &job, err)
                 : service_show_job(service, web_rest(request), &job, err);
    return rc < 0 ? rc : give(job, out, size);
}

/* Read a whole number within limits. */
static int read_number(const char *name, const char *text, uint64_t least, uint64_t most,
                       uint64_t *value, struct error *err)
{
    char *end;
    errno = 0;
    uintmax_t number = strtoumax(text, &end, 10);
    if (text[strspn(text, "0123456789")] || end == text || errno || number < least || number > most)
        return error_set(err, -EINVAL,
                         "%s: '%.32s' is no whole number from %" PRIu64 " to %" PRIu64, name, text,
                         least, most);
    *value = number;
    return 0;
}

/* Read a number if it is given. */
static int read_count(const struct web_request *request, const char *name, uint64_t least,
                      uint64_t most, uint64_t *value, struct error *err)
{
    const char *text = web_parameter(request, name);
    return text ? read_number(name, text, least, most, value, err) : 0;
}

static const char *text_of(const struct web_request *request, const char *name)
{
    const char *text = web_parameter(request, name);
    return text ? text : "";
}

int api_events(void *service, const struct web_request *request, char **out, size_t *size,
               struct error *err)
{
    json_t *list;
    struct store_query query = {.job = text_of(request, "job"),
                                .node = text_of(request, "node"),
                                .newest = !web_parameter(request, "after")};
    uint64_t limit = EVENTS_STANDARD, steps = 0;
    int rc = read_count(request, "after", 0, INT64_MAX, &query.after, err);
    if (rc == 0)
        rc = read_count(request, "limit", 1, EVENTS_MAX, &limit, err);
    if (rc == 0)
        rc = read_count(request, "steps", 0, 1, &steps, err);
    if (rc < 0)
        return rc;
    query.count_max = limit;
    query.except = steps ? NULL : "step";
    rc = service_list_events(service, &query, &list, err);
    return rc < 0 ? rc : give(list, out, size);
}

/* ---- events as they come ---- */

#define STREAM_EVENTS 100 /* sent at once */

struct cursor {
    char *job, *node;
    bool steps;
    uint64_t after; /* revision of the newest event looked at */
};

static void cursor_close(void *state)
{
    struct cursor *cursor = state;
    free(cursor->job);
    free(cursor->node);
    free(cursor);
}

/* A reconnecting client tells by a header what it received last; this takes precedence, because its
 * URL is still the old one. */
static int read_after(const struct web_request *request, uint64_t newest, uint64_t *after,
                      struct error *err)
{
    const char *last = web_last_event(request);
    *after = newest;
    int rc = last ? read_number("Last-Event-ID", last, 0, INT64_MAX, after, err)
                  : read_count(request, "after", 0, INT64_MAX, after, err);
    if (rc == 0 && *after > newest)
        rc = error_set(err, -EINVAL,
                       "there is no event %" PRIu64 ", the newest is %" PRIu64
                       ": read them from the beginning",
                       *after, newest);
    return rc;
}

static int cursor_open(void *service, const struct web_request *request, void **state,
                       struct error *err)
{
    uint64_t steps = 0, after;
    int rc = read_count(request, "steps", 0, 1, &steps, err);
    if (rc == 0)
        rc = read_after(request, service_events_revision(service), &after, err);
    if (rc < 0)
        return rc;
    struct cursor *cursor = xcalloc(1, sizeof *cursor);
    cursor->job = xstrdup(text_of(request, "job"));
    cursor->node = xstrdup(text_of(request, "node"));
    cursor->steps = steps;
    cursor->after = after;
    *state = cursor;
    return 0;
}

static bool cursor_ready(void *service, const void *state)
{
    const struct cursor *cursor = state;
    return service_events_revision(service) > cursor->after;
}

/* NULL: there are none to send. */
static char *print_events(const json_t *events, size_t *size)
{
    char *out = NULL;
    json_t *event;
    size_t i;
    if (json_array_size(events) == 0)
        return NULL;
    FILE *file = open_memstream(&out, size);
    json_array_foreach(events, i, event)
    {
        fprintf(file, "id: %" JSON_INTEGER_FORMAT "\ndata: ",
                json_integer_value(json_object_get(event, "revision")));
        json_dumpf(event, file, JSON_FORMAT);
        fputs("\n\n", file);
    }
    fclose(file);
    return out;
}

static int cursor_next(void *service, void *state, char **out, size_t *size, struct error *err)
{
    struct cursor *cursor = state;
    json_t *list;
    struct store_query query = {.job = cursor->job,
                                .node = cursor->node,
                                .after = cursor->after,
                                .count_max = STREAM_EVENTS,
                                .except = cursor->steps ? NULL : "step"};
    int rc = service_list_events(service, &query, &list, err);
    if (rc < 0)
        return rc;
    const json_t *events = json_object_get(list, "events"), *from = list;
    if (json_is_true(json_object_get(list, "more")))
        from = json_array_get(events, json_array_size(events) - 1);
    cursor->after = (uint64_t)json_integer_value(json_object_get(from, "revision"));
    *out = print_events(events, size);
    json_decref(list);
    return 0;
}

const struct web_stream api_event_stream = {
    .open_cb = cursor_open,
    .ready_cb = cursor_ready,
    .next_cb = cursor_next,
    .close_cb = cursor_close,
};
