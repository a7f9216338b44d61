/* timeline.c - see timeline.h. */
#include "coordinator/cli/drawings/timeline.h"

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "common/program/simulate.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/shared_cores.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes ownership of the event. */
static void write_event(struct timeline *timeline, json_t *event)
{
    fputs(timeline->begun ? ",\n" : "\n", timeline->out);
    timeline->begun = true;
    json_dumpf(event, timeline->out, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
}

static void name(struct timeline *timeline, const char *what, int rank, int track, const char *text)
{
    write_event(timeline, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid",
                                    rank, "tid", track, "args", "name", text));
}

static void name_rank(struct timeline *timeline, const struct plan *plan, int rank)
{
    const char *device = plan_device(plan, rank);
    char *text = xasprintf("rank %d%s%s", rank, device ? ", " : "", device ? device : "");
    name(timeline, "process_name", rank, 0, text);
    free(text);
}

int timeline_begin(struct timeline *timeline, const struct planned *planned, struct error *err)
{
    int count = plan_ranks(planned->plan), rc = 0;
    *timeline = (struct timeline){.programs = xcalloc((size_t)count, sizeof(struct program *)),
                                  .count = count};
    for (int rank = 0; rank < count && rc == 0; rank++)
        rc = lower(planned->graph, planned->plan, rank, &timeline->programs[rank], err);
    if (rc < 0)
        return rc;
    timeline->out = open_memstream(&timeline->text, &timeline->size);
    json_t *about = resource_object("Trace", json_pack("{s:s}", "plan", planned->plan->id));
    fputs("{\"displayTimeUnit\": \"ms\", \"otherData\": ", timeline->out);
    json_dumpf(about, timeline->out, JSON_COMPACT);
    fputs(", \"traceEvents\": [", timeline->out);
    json_decref(about);
    for (int rank = 0; rank < count; rank++)
        name_rank(timeline, planned->plan, rank);
    return 0;
}

static int track_of(enum timeline_track track, enum queue queue)
{
    return (int)track + (queue == QUEUE_COMMUNICATION ? TIMELINE_TRACKS : 0);
}

static void name_tracks(struct timeline *timeline, int rank, enum timeline_track track,
                        const char *text)
{
    char *beside = xasprintf("%s, communication", text);
    name(timeline, "thread_name", rank, track_of(track, QUEUE_COMPUTE), text);
    if (program_overlaps(timeline->programs[rank]))
        name(timeline, "thread_name", rank, track_of(track, QUEUE_COMMUNICATION), beside);
    free(beside);
}

static json_t *describe(const struct program *program, const struct program_cursor *cursor)
{
    const struct instruction *instruction = cursor->instruction;
    bool message = instruction->kind == INSTRUCTION_SEND ||
                   instruction->kind == INSTRUCTION_RECEIVE ||
                   instruction->kind == INSTRUCTION_WAIT;
    json_t *out = json_pack("{s:i}", "micro_batch", cursor->micro_batch);
    if (instruction->block >= 0)
        json_object_set_new(out, "block",
                            json_string(program->graph->blocks[instruction->block].name));
    if (message)
        json_object_set_new(out, "peer", json_integer(instruction->message.peer));
    return out;
}

static void write_span(struct timeline *timeline, int rank, enum timeline_track track,
                       const struct program_cursor *cursor, double begin_us, double end_us)
{
    const struct program *program = timeline->programs[rank];
    write_event(timeline,
                json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "name",
                          instruction_name(program, cursor->instruction), "cat",
                          section_name(instruction_section(program, cursor->instruction)), "pid",
                          rank, "tid", track_of(track, cursor->instruction->queue), "ts", begin_us,
                          "dur", end_us - begin_us, "args", describe(program, cursor)));
}

static void predicted(void *context, int rank, const struct program_cursor *cursor, double begin,
                      double end)
{
    write_span(context, rank, TIMELINE_PREDICTED, cursor, begin * 1e6, end * 1e6);
}

int timeline_predict(struct timeline *timeline, const struct planned *planned, struct error *err)
{
    struct shared_cores used;
    shared_cores_init(&used, planned->rates.devices, planned->rates.count);
    struct planner_request request = {.graph = planned->graph,
                                      .job = planned->config,
                                      .devices = used.devices,
                                      .device_count = used.count};
    struct pricing pricing = pricing_plain(&request);
    struct timing timing = {&pricing, pricing_seconds, pricing_slowdown};
    struct simulation_trace trace = {timeline, predicted};
    struct simulation simulation;
    for (int rank = 0; rank < timeline->count; rank++)
        name_tracks(timeline, rank, TIMELINE_PREDICTED, "predicted");
    int rc = simulate((const struct program *const *)timeline->programs, timeline->count,
                      PROGRAM_TRAIN, &timing, &trace, &simulation, err);
    shared_cores_finish(&used);
    return rc;
}

void timeline_measure(struct timeline *timeline, int rank, uint64_t base_ns,
                      const uint64_t *begin_ns, const uint64_t *end_ns, size_t count)
{
    struct program_cursor cursor = {0};
    name_tracks(timeline, rank, TIMELINE_MEASURED, "measured");
    for (size_t i = 0; i < count && program_next(timeline->programs[rank], PROGRAM_TRAIN, &cursor);
         i++)
        write_span(timeline, rank, TIMELINE_MEASURED, &cursor,
                   (double)(base_ns + begin_ns[i]) / 1e3, (double)(base_ns + end_ns[i]) / 1e3);
}

void timeline_finish(struct timeline *timeline)
{
    if (timeline->out)
        fclose(timeline->out);
    for (int rank = 0; rank < timeline->count; rank++)
        program_destroy(timeline->programs[rank]);
    free(timeline->programs);
    free(timeline->text);
    *timeline = (struct timeline){0};
}

/* Write to this file; a failure of any part counts. */
static int write_text(const struct timeline *timeline, FILE *file, bool close)
{
    int rc = fwrite(timeline->text, 1, timeline->size, file) < timeline->size ? -errno : 0;
    if ((close ? fclose(file) : fflush(file)) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* A file appears when it is whole; what is there and no file, such as a pipe, is written into. */
static int write_file(const struct timeline *timeline, const char *path)
{
    struct stat there;
    bool into = stat(path, &there) == 0 && !S_ISREG(there.st_mode);
    char *part = into ? xstrdup(path) : xasprintf("%s.%ld.part", path, (long)getpid());
    FILE *file = fopen(part, "we");
    int rc = file ? write_text(timeline, file, true) : -errno;
    if (rc == 0 && !into && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0 && file && !into)
        unlink(part);
    free(part);
    return rc;
}

int timeline_write(struct timeline *timeline, const char *path, struct error *err)
{
    fputs("\n]}\n", timeline->out);
    fclose(timeline->out);
    timeline->out = NULL;
    int rc = path ? write_file(timeline, path) : write_text(timeline, stdout, false);
    return rc < 0
               ? error_set(err, rc, "cannot write '%s': %s", path ? path : "stdout", strerror(-rc))
               : 0;
}
