/* resources.c - what the coordinator tells programs over HTTP. */
#include "coordinator/service/internal.h"

#include "common/base/memory.h"
#include "coordinator/resources/resources.h"

#include <errno.h>
#include <stdlib.h>

/* Limit for a list of events, unless it has a single, longer one. */
#define EVENTS_BYTES_MAX ((size_t)1 << 20)

/* Drop the profiles: each is longer than the rest of a node, and this list is asked for again and
 * again. */
static void forget_profiles(Gimbal__NodeStatus *node)
{
    for (size_t i = 0; i < node->hardware->n_devices; i++) {
        free(node->hardware->devices[i]->profile_json);
        node->hardware->devices[i]->profile_json = xstrdup("");
    }
}

void service_list_nodes(const struct service *service, json_t **out)
{
    json_t *items = json_array();
    for (size_t i = 0; i < membership_count(service->membership); i++) {
        Gimbal__NodeStatus *node = worker_to_wire(service, membership_at(service->membership, i));
        forget_profiles(node);
        json_array_append_new(items, resource_node(node));
        gimbal__node_status__free_unpacked(node, NULL);
    }
    *out = resource_list("NodeList", "nodes", items);
}

int service_show_node(const struct service *service, const char *name, json_t **out,
                      struct error *err)
{
    const struct worker *worker = membership_find(service->membership, name);
    if (!worker)
        return error_set(err, -ENOENT, "there is no node '%.64s'", name);
    Gimbal__NodeStatus *node = worker_to_wire(service, worker);
    *out = resource_node(node);
    gimbal__node_status__free_unpacked(node, NULL);
    return 0;
}

void service_list_jobs(const struct service *service, json_t **out)
{
    json_t *items = json_array();
    for (size_t i = 0; i < jobs_count(service->jobs); i++) {
        Gimbal__JobStatus *job = job_to_wire(service, jobs_at(service->jobs, i));
        json_array_append_new(items, resource_job(job));
        gimbal__job_status__free_unpacked(job, NULL);
    }
    *out = resource_list("JobList", "jobs", items);
}

static json_t *point(const struct step_point *point)
{
    return json_pack("{s:I, s:o, s:f, s:I, s:f}", "step", (json_int_t)point->step, "loss",
                     resource_number(point->loss), "time_s", point->time_s, "tokens",
                     (json_int_t)point->tokens, "unix_s", 1e-3 * (double)point->end_ms);
}

/* The points kept of the whole run, followed by the newest steps one by one. */
static json_t *curve(const struct steps *steps)
{
    json_t *points = json_array();
    for (size_t i = 0; i < steps->curve_count; i++)
        if (steps->count == 0 || steps->curve[i].step < steps->window[0].step)
            json_array_append_new(points, point(&steps->curve[i]));
    for (size_t i = 0; i < steps->count; i++)
        json_array_append_new(points, point(&steps->window[i]));
    return points;
}

static json_t *evaluations(const Gimbal__GetJobReply *reply)
{
    json_t *items = json_array();
    for (size_t i = 0; i < reply->n_evaluations; i++)
        json_array_append_new(items, json_pack("{s:I, s:o}", "step",
                                               (json_int_t)reply->evaluations[i]->step, "loss",
                                               resource_number(reply->evaluations[i]->loss)));
    return items;
}

int service_show_job(const struct service *service, const char *id, json_t **out, struct error *err)
{
    const struct job *job = jobs_find(service->jobs, id);
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
    const struct job_telemetry *measured = telemetry_find(service->telemetry, id);
    struct job_details details;
    job_details_begin(&details, service, job);
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
    json_object_set_new(*out, "curve", measured ? curve(&measured->steps) : json_array());
    json_object_set_new(*out, "evaluations", evaluations(reply));
    json_object_set_new(*out, "checkpoints", checkpoints);
    json_object_set_new(*out, "times", times);
    job_details_finish(&details);
    return 0;
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
static int take(void *data, uint64_t revision, const Gimbal__Event *event)
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

int service_list_events(const struct service *service, const struct store_query *query,
                        json_t **out, struct error *err)
{
    struct event_page page = {.query = query,
                              .items = json_array(),
                              .sizes = xcalloc(query->count_max + 1, sizeof *page.sizes)};
    struct store_query one_more = *query;
    one_more.count_max++;
    int rc = store_read_events(service->options.store, &one_more, take, &page, err);
    free(page.sizes);
    if (rc < 0) {
        json_decref(page.items);
        return rc;
    }
    *out = resource_list("EventList", "events", page.items);
    json_object_set_new(*out, "revision",
                        json_integer((json_int_t)service_events_revision(service)));
    json_object_set_new(*out, "more", json_boolean(page.more));
    return 0;
}

uint64_t service_events_revision(const struct service *service)
{
    return stream_revision(service->events);
}
