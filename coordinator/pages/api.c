/* api.c - the HTTP API: nodes, jobs and events as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/pages/pages.h"
#include "coordinator/resources/resources.h"
#include "coordinator/service/wire.h"
#include "coordinator/turn/curves.h"
#include "coordinator/turn/retention.h"

#define EVENTS_STANDARD 100
#define EVENTS_MAX 1000
#define STREAM_EVENTS 100 /* sent at once */
/* Limit for a list of events, unless it has a single, longer one. */
#define EVENTS_BYTES_MAX ((size_t)1 << 20)

#define JSON_FORMAT (JSON_COMPACT | JSON_REAL_PRECISION(15))

static const struct state *api_state(void *data)
{
    return ((const struct pages *)data)->state;
}

/* Takes ownership of the object. */
static int api_give(json_t *object, char **out, size_t *size)
{
    *out = json_dumps(object, JSON_FORMAT);
    *size = strlen(*out);
    json_decref(object);
    return 0;
}

/* ---- nodes and jobs ---- */

/* Drop the profiles: each is longer than the rest of a node, and this list is asked for again and
 * again. */
static void node_forget_profiles(Gimbal__NodeStatus *node)
{
    for (size_t i = 0; i < node->hardware->n_devices; i++) {
        free(node->hardware->devices[i]->profile_json);
        node->hardware->devices[i]->profile_json = xstrdup("");
    }
}

int api_nodes(void *data, const struct web_request *request, char **out, size_t *size,
              struct error *err)
{
    const struct state *state = api_state(data);
    json_t *items = json_array();
    (void)request, (void)err;
    for (size_t i = 0; i < membership_count(state->membership); i++) {
        Gimbal__NodeStatus *node = worker_to_wire(state, membership_at(state->membership, i));
        node_forget_profiles(node);
        json_array_append_new(items, resource_node(node));
        gimbal__node_status__free_unpacked(node, NULL);
    }
    return api_give(resource_list("NodeList", "nodes", items), out, size);
}

int api_node(void *data, const struct web_request *request, char **out, size_t *size,
             struct error *err)
{
    const struct state *state = api_state(data);
    const char *name = web_rest(request);
    const struct worker *worker = membership_find(state->membership, name);
    if (!worker)
        return error_set(err, -ENOENT, "there is no node '%.64s'", name);
    Gimbal__NodeStatus *node = worker_to_wire(state, worker);
    json_t *object = resource_node(node);
    gimbal__node_status__free_unpacked(node, NULL);
    return api_give(object, out, size);
}

int api_jobs(void *data, const struct web_request *request, char **out, size_t *size,
             struct error *err)
{
    const struct state *state = api_state(data);
    json_t *items = json_array();
    (void)request, (void)err;
    for (size_t i = 0; i < jobs_count(state->jobs); i++) {
        Gimbal__JobStatus *job = job_to_wire(state, jobs_at(state->jobs, i));
        json_array_append_new(items, resource_job(job));
        gimbal__job_status__free_unpacked(job, NULL);
    }
    return api_give(resource_list("JobList", "jobs", items), out, size);
}

static json_t *curve_point(const struct step_point *point)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:f, s:I, s:f}", "step", (json_int_t)point->step,
                     "epoch", (json_int_t)point->epoch, "loss", resource_number(point->loss),
                     "gradient_norm", resource_number(point->gradient_norm), "time_s",
                     point->time_s, "tokens", (json_int_t)point->tokens, "unix_s",
                     1e-3 * (double)point->end_ms);
}

static json_t *job_curve(const struct steps *steps)
{
    json_t *points = json_array();
    for (size_t i = 0; i < steps->count; i++)
        json_array_append_new(points, curve_point(&steps->points[i]));
    return points;
}

static json_t *job_evaluations(const Gimbal__GetJobReply *reply)
{
    json_t *items = json_array();
    for (size_t i = 0; i < reply->n_evaluations; i++) {
        const Gimbal__EvaluationRecord *item = reply->evaluations[i];
        json_array_append_new(items, json_pack("{s:I, s:o, s:I}", "step", (json_int_t)item->step,
                                               "loss", resource_number(item->loss), "targets",
                                               (json_int_t)item->targets));
    }
    return items;
}

static int job_show(const struct state *state, const char *id, json_t **out, struct error *err)
{
    const struct job *job = jobs_find(state->jobs, id);
    if (!job)
        return retention_explain(state, id, err);
    const struct job_telemetry *measured = curves_whole(state, job);
    struct job_details details;
    job_details_begin(&details, state, job);
    const Gimbal__GetJobReply *reply = &details.reply;
    json_t *checkpoints = json_array(), *times = json_array();
    for (size_t i = 0; i < reply->n_checkpoints; i++)
        json_array_append_new(checkpoints, resource_checkpoint(reply->checkpoints[i]));
    for (size_t i = 0; i < reply->n_times; i++)
        json_array_append_new(times, resource_times(reply->times[i]));
    json_t *plan = reply->plan ? json_loads(reply->plan->json, 0, NULL) : NULL;
    *out = resource_job(reply->status);
    json_object_set_new(*out, "file", json_string(job->text));
    json_object_set_new(*out, "candidates", json_string(reply->candidates));
    json_object_set_new(*out, "plan_content", plan ? plan : json_null());
    json_object_set_new(*out, "curve", measured ? job_curve(&measured->steps) : json_array());
    json_object_set_new(*out, "evaluations", job_evaluations(reply));
    json_object_set_new(*out, "checkpoints", checkpoints);
    json_object_set_new(*out, "times", times);
    job_details_finish(&details);
    return 0;
}

/* "j-1/timeline" */
static bool api_is_timeline(const char *rest, char *job, size_t size)
{
    static const char end[] = "/timeline";
    size_t length = strlen(rest), tail = sizeof end - 1;
    if (length <= tail || strcmp(rest + length - tail, end) != 0)
        return false;
    snprintf(job, size, "%.*s", (int)(length - tail), rest);
    return true;
}

int api_job(void *data, const struct web_request *request, char **out, size_t *size,
            struct error *err)
{
    struct pages *pages = data;
    char id[128];
    json_t *job;
    int rc = api_is_timeline(web_rest(request), id, sizeof id)
                 ? timelines_show(pages->timelines, id, &job, err)
                 : job_show(pages->state, web_rest(request), &job, err);
    return rc < 0 ? rc : api_give(job, out, size);
}

/* ---- events ---- */

/* Read a whole number within limits. */
static int api_read_number(const char *name, const char *text, uint64_t least, uint64_t most,
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
static int api_read_count(const struct web_request *request, const char *name, uint64_t least,
                          uint64_t most, uint64_t *value, struct error *err)
{
    const char *text = web_parameter(request, name);
    return text ? api_read_number(name, text, least, most, value, err) : 0;
}

static const char *api_text(const struct web_request *request, const char *name)
{
    const char *text = web_parameter(request, name);
    return text ? text : "";
}

struct event_page {
    const struct store_query *query;
    json_t *items;
    size_t *sizes; /* packed size of every event taken so far */
    size_t taken, bytes;
    bool more;
};

/* The query asks for one event more than is wanted, which shows that there are more. It is left out
 * at the end of a list from the oldest on, or at the beginning if the newest are wanted. */
static int event_page_take(void *data, uint64_t revision, const Gimbal__Event *event)
{
    struct event_page *page = data;
    size_t size = gimbal__event__get_packed_size(event), count = json_array_size(page->items);
    bool full = count == page->query->count_max || page->bytes + size > EVENTS_BYTES_MAX;
    if (full && !page->query->newest && count > 0) {
        page->more = true;
        return -1;
    }
    json_t *item = resource_event(event);
    json_object_set_new(item, "revision", json_integer((json_int_t)revision));
    json_array_append_new(page->items, item);
    page->sizes[page->taken++] = size;
    page->bytes += size;
    for (; count > 0 && (count == page->query->count_max || page->bytes > EVENTS_BYTES_MAX);
         count--) {
        page->bytes -= page->sizes[page->taken - 1 - count];
        json_array_remove(page->items, 0);
        page->more = true;
    }
    return 0;
}

static int events_list(const struct state *state, const struct store_query *query, json_t **out,
                       struct error *err)
{
    struct event_page page = {.query = query,
                              .items = json_array(),
                              .sizes = xcalloc(query->count_max + 1, sizeof *page.sizes)};
    struct store_query one_more = *query;
    one_more.count_max++;
    int rc = store_read_events(state->options.store, &one_more, event_page_take, &page, err);
    free(page.sizes);
    if (rc < 0) {
        json_decref(page.items);
        return rc;
    }
    *out = resource_list("EventList", "events", page.items);
    json_object_set_new(*out, "revision", json_integer((json_int_t)stream_revision(state->events)));
    json_object_set_new(*out, "more", json_boolean(page.more));
    return 0;
}

int api_events(void *data, const struct web_request *request, char **out, size_t *size,
               struct error *err)
{
    json_t *list;
    struct store_query query = {.job = api_text(request, "job"),
                                .node = api_text(request, "node"),
                                .newest = !web_parameter(request, "after")};
    uint64_t limit = EVENTS_STANDARD, steps = 0;
    int rc = api_read_count(request, "after", 0, INT64_MAX, &query.after, err);
    if (rc == 0)
        rc = api_read_count(request, "limit", 1, EVENTS_MAX, &limit, err);
    if (rc == 0)
        rc = api_read_count(request, "steps", 0, 1, &steps, err);
    if (rc < 0)
        return rc;
    query.count_max = limit;
    query.except = steps ? NULL : "step";
    rc = events_list(api_state(data), &query, &list, err);
    return rc < 0 ? rc : api_give(list, out, size);
}

/* ---- events as they come ---- */

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
static int cursor_read_after(const struct web_request *request, uint64_t newest, uint64_t *after,
                             struct error *err)
{
    const char *last = web_last_event(request);
    *after = newest;
    int rc = last ? api_read_number("Last-Event-ID", last, 0, INT64_MAX, after, err)
                  : api_read_count(request, "after", 0, INT64_MAX, after, err);
    if (rc == 0 && *after > newest)
        rc = error_set(err, -EINVAL,
                       "there is no event %" PRIu64 ", the newest is %" PRIu64
                       ": read them from the beginning",
                       *after, newest);
    return rc;
}

static int cursor_open(void *data, const struct web_request *request, void **state,
                       struct error *err)
{
    uint64_t steps = 0, after;
    int rc = api_read_count(request, "steps", 0, 1, &steps, err);
    if (rc == 0)
        rc = cursor_read_after(request, stream_revision(api_state(data)->events), &after, err);
    if (rc < 0)
        return rc;
    struct cursor *cursor = xcalloc(1, sizeof *cursor);
    cursor->job = xstrdup(api_text(request, "job"));
    cursor->node = xstrdup(api_text(request, "node"));
    cursor->steps = steps;
    cursor->after = after;
    *state = cursor;
    return 0;
}

static bool cursor_ready(void *data, const void *state)
{
    const struct cursor *cursor = state;
    return stream_revision(api_state(data)->events) > cursor->after;
}

/* NULL: there are none to send. */
static char *events_print(const json_t *events, size_t *size)
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

static int cursor_next(void *data, void *state, char **out, size_t *size, struct error *err)
{
    struct cursor *cursor = state;
    json_t *list;
    struct store_query query = {.job = cursor->job,
                                .node = cursor->node,
                                .after = cursor->after,
                                .count_max = STREAM_EVENTS,
                                .except = cursor->steps ? NULL : "step"};
    int rc = events_list(api_state(data), &query, &list, err);
    if (rc < 0)
        return rc;
    const json_t *events = json_object_get(list, "events"), *from = list;
    if (json_is_true(json_object_get(list, "more")))
        from = json_array_get(events, json_array_size(events) - 1);
    cursor->after = (uint64_t)json_integer_value(json_object_get(from, "revision"));
    *out = events_print(events, size);
    json_decref(list);
    return 0;
}

const struct web_stream api_event_stream = {
    .open_cb = cursor_open,
    .ready_cb = cursor_ready,
    .next_cb = cursor_next,
    .close_cb = cursor_close,
};
