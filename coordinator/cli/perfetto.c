/* perfetto.c - see perfetto.h. */
#include "coordinator/cli/perfetto.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/simulation/simulate.h"

/* Takes ownership of the event. */
static void perfetto_write_event(struct perfetto *perfetto, json_t *event)
{
    fputs(perfetto->begun ? ",\n" : "\n", perfetto->out);
    perfetto->begun = true;
    json_dumpf(event, perfetto->out, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(event);
}

static void perfetto_name(struct perfetto *perfetto, const char *what, int rank, int track,
                          const char *text)
{
    perfetto_write_event(perfetto,
                         json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", what, "pid",
                                   rank, "tid", track, "args", "name", text));
}

static void perfetto_name_rank(struct perfetto *perfetto, const struct plan *plan, int rank)
{
    const char *device = plan_device(plan, rank);
    char *text = xasprintf("rank %d%s%s", rank, device ? ", " : "", device ? device : "");
    perfetto_name(perfetto, "process_name", rank, 0, text);
    free(text);
}

int perfetto_begin(struct perfetto *perfetto, const struct planned *planned, struct error *err)
{
    int count = plan_ranks(planned->plan), rc = 0;
    *perfetto = (struct perfetto){.programs = xcalloc((size_t)count, sizeof(struct program *)),
                                  .count = count};
    for (int rank = 0; rank < count && rc == 0; rank++)
        rc = lower(planned->graph, planned->plan, rank, &perfetto->programs[rank], err);
    if (rc < 0)
        return rc;
    perfetto->out = open_memstream(&perfetto->text, &perfetto->size);
    json_t *about = resource_object("Trace", json_pack("{s:s}", "plan", planned->plan->id));
    fputs("{\"displayTimeUnit\": \"ms\", \"otherData\": ", perfetto->out);
    json_dumpf(about, perfetto->out, JSON_COMPACT);
    fputs(", \"traceEvents\": [", perfetto->out);
    json_decref(about);
    for (int rank = 0; rank < count; rank++)
        perfetto_name_rank(perfetto, planned->plan, rank);
    return 0;
}

static int perfetto_track_of(enum perfetto_track track, enum queue queue)
{
    return (int)track + (queue == QUEUE_COMMUNICATION ? PERFETTO_TRACKS : 0);
}

static void perfetto_name_tracks(struct perfetto *perfetto, int rank, enum perfetto_track track,
                                 const char *text)
{
    char *beside = xasprintf("%s, communication", text);
    perfetto_name(perfetto, "thread_name", rank, perfetto_track_of(track, QUEUE_COMPUTE), text);
    if (program_overlaps(perfetto->programs[rank]))
        perfetto_name(perfetto, "thread_name", rank, perfetto_track_of(track, QUEUE_COMMUNICATION),
                      beside);
    free(beside);
}

static json_t *perfetto_describe(const struct program *program, const struct program_cursor *cursor)
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

static void perfetto_write_span(struct perfetto *perfetto, int rank, enum perfetto_track track,
                                const struct program_cursor *cursor, double begin_us, double end_us)
{
    const struct program *program = perfetto->programs[rank];
    perfetto_write_event(
        perfetto,
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "ph", "X", "name",
                  instruction_name(program, cursor->instruction), "cat",
                  section_name(instruction_section(program, cursor->instruction)), "pid", rank,
                  "tid", perfetto_track_of(track, cursor->instruction->queue), "ts", begin_us,
                  "dur", end_us - begin_us, "args", perfetto_describe(program, cursor)));
}

static void perfetto_predicted(void *context, int rank, const struct program_cursor *cursor,
                               double begin, double end)
{
    perfetto_write_span(context, rank, PERFETTO_PREDICTED, cursor, begin * 1e6, end * 1e6);
}

int perfetto_predict(struct perfetto *perfetto, const struct planned *planned, struct error *err)
{
    struct shared_cores used;
    struct planner_request all = planned_request(planned);
    int rc = shared_cores_order(&all, planned->plan, &used, err);
    struct planner_request request = shared_cores_ask(&all, &used);
    struct pricing pricing = pricing_plain(&request);
    struct timing timing = pricing_timing(&pricing);
    struct simulation_trace trace = {perfetto, perfetto_predicted};
    struct simulation simulation;
    for (int rank = 0; rank < perfetto->count && rc == 0; rank++)
        perfetto_name_tracks(perfetto, rank, PERFETTO_PREDICTED, "predicted");
    if (rc == 0)
        rc = simulate((const struct program *const *)perfetto->programs, perfetto->count,
                      PROGRAM_TRAIN, &timing, &trace, &simulation, err);
    shared_cores_finish(&used);
    return rc;
}

void perfetto_measure(struct perfetto *perfetto, int rank, uint64_t base_ns,
                      const uint64_t *begin_ns, const uint64_t *end_ns, size_t count)
{
    struct program_cursor cursor = {0};
    perfetto_name_tracks(perfetto, rank, PERFETTO_MEASURED, "measured");
    for (size_t i = 0; i < count && program_next(perfetto->programs[rank], PROGRAM_TRAIN, &cursor);
         i++)
        perfetto_write_span(perfetto, rank, PERFETTO_MEASURED, &cursor,
                            (double)(base_ns + begin_ns[i]) / 1e3,
                            (double)(base_ns + end_ns[i]) / 1e3);
}

void perfetto_finish(struct perfetto *perfetto)
{
    if (perfetto->out)
        fclose(perfetto->out);
    for (int rank = 0; rank < perfetto->count; rank++)
        program_destroy(perfetto->programs[rank]);
    free(perfetto->programs);
    free(perfetto->text);
    *perfetto = (struct perfetto){0};
}

/* Write to this file; a failure of any part counts. */
static int perfetto_write_text(const struct perfetto *perfetto, FILE *file, bool close)
{
    int rc = fwrite(perfetto->text, 1, perfetto->size, file) < perfetto->size ? -errno : 0;
    if ((close ? fclose(file) : fflush(file)) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

/* A file appears when it is whole; what is there and no file, such as a pipe, is written into. */
static int perfetto_write_file(const struct perfetto *perfetto, const char *path)
{
    struct stat there;
    bool into = stat(path, &there) == 0 && !S_ISREG(there.st_mode);
    char *part = into ? xstrdup(path) : xasprintf("%s.%ld.part", path, (long)getpid());
    FILE *file = fopen(part, "we");
    int rc = file ? perfetto_write_text(perfetto, file, true) : -errno;
    if (rc == 0 && !into && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0 && file && !into)
        unlink(part);
    free(part);
    return rc;
}

int perfetto_write(struct perfetto *perfetto, const char *path, struct error *err)
{
    fputs("\n]}\n", perfetto->out);
    fclose(perfetto->out);
    perfetto->out = NULL;
    int rc =
        path ? perfetto_write_file(perfetto, path) : perfetto_write_text(perfetto, stdout, false);
    return rc < 0
               ? error_set(err, rc, "cannot write '%s': %s", path ? path : "stdout", strerror(-rc))
               : 0;
}
