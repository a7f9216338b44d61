/* waits.c - finds what an instruction of one queue has to wait for on the other: earlier accesses
 * to the same memory, if one of the two writes.
 *
 * Memory that the communication queue touches is cut into atoms at the ends of all its accesses.
 * For each atom and section, the last access and the last write are recorded. Since a queue runs in
 * order, waiting for the last one means waiting for all before it. The forward and backward
 * sections run again for every micro-batch; there an instruction stands for its latest run. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* The boundaries of a region's atoms, ascending: where each begins, and where the last one ends. */
struct atoms {
    uint64_t *ends;
    size_t count, capacity;
    int first; /* index of the region's first atom among all */
};

/* The last instructions of a queue that touched an atom in a section; -1: none. */
struct last {
    int access, write;
};

/* The atoms [first, end) that an instruction touches in one of its accesses. */
struct span {
    int first, end;
    bool writes;
};

struct finder {
    struct program *program;
    struct atoms atoms[REGIONS];
    int atom_count;
    struct span *spans; /* those of instruction i are spans[of[i]] to spans[of[i + 1] - 1] */
    size_t span_count, span_capacity;
    size_t *of;
    struct last *whole;   /* [(section * QUEUES + queue) * atom_count + atom] */
    struct last *running; /* [queue * atom_count + atom]: in the current section so far */
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_end(struct atoms *atoms, uint64_t end)
{
    atoms->ends = grow(atoms->ends, atoms->count, &atoms->capacity, sizeof *atoms->ends);
    atoms->ends[atoms->count++] = end;
}

static void cut(struct finder *finder)
{
    struct program *p = finder->program;
    struct access accesses[ACCESSES_MAX];
    for (size_t i = 0; i < p->instruction_count; i++) {
        if (p->instructions[i].queue != QUEUE_COMMUNICATION)
            continue;
        int count = instruction_accesses(p, &p->instructions[i], accesses);
        for (int a = 0; a < count; a++) {
            add_end(&finder->atoms[accesses[a].region], accesses[a].low);
            add_end(&finder->atoms[accesses[a].region], accesses[a].high);
        }
    }
    for (int region = 0; region < REGIONS; region++) {
        struct atoms *atoms = &finder->atoms[region];
        size_t kept = 0;
        if (atoms->count > 1)
            qsort(atoms->ends, atoms->count, sizeof *atoms->ends, by_value);
        for (size_t i = 0; i < atoms->count; i++)
            if (kept == 0 || atoms->ends[i] != atoms->ends[kept - 1])
                atoms->ends[kept++] = atoms->ends[i];
        atoms->count = kept;
        atoms->first = finder->atom_count;
        finder->atom_count += kept ? (int)kept - 1 : 0;
    }
}

/* How many boundaries lie at or below this offset. */
static size_t ends_to(const struct atoms *atoms, uint64_t place)
{
    size_t low = 0, high = atoms->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (atoms->ends[middle] <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The atoms that an access touches; none if the communication queue never touches this memory. */
static struct span span_of(const struct finder *finder, const struct access *access)
{
    const struct atoms *atoms = &finder->atoms[access->region];
    struct span span = {atoms->first, atoms->first, access->writes};
    if (atoms->count == 0)
        return span;
    size_t low = ends_to(atoms, access->low), high = ends_to(atoms, access->high - 1);
    high = high == atoms->count ? atoms->count - 1 : high;
    span.first += low ? (int)low - 1 : 0;
    span.end += (int)high;
    return span;
}

static void find_spans(struct finder *finder)
{
    const struct program *p = finder->program;
    struct access accesses[ACCESSES_MAX];
    finder->of = xcalloc(p->instruction_count + 1, sizeof *finder->of);
    for (size_t i = 0; i < p->instruction_count; i++) {
        int count = instruction_accesses(p, &p->instructions[i], accesses);
        for (int a = 0; a < count; a++) {
            struct span span = span_of(finder, &accesses[a]);
            if (span.first >= span.end)
                continue;
            finder->spans =
                grow(finder->spans, finder->span_count, &finder->span_capacity, sizeof span);
            finder->spans[finder->span_count++] = span;
        }
        finder->of[i + 1] = finder->span_count;
    }
}

/* The spans of an instruction, up to *end. */
static const struct span *spans_of(const struct finder *finder, int index, const struct span **end)
{
    *end = finder->spans + finder->of[index + 1];
    return finder->spans + finder->of[index];
}

static void note(struct last *lasts, const struct span *span, int index)
{
    for (int atom = span->first; atom < span->end; atom++) {
        lasts[atom].access = index;
        if (span->writes)
            lasts[atom].write = index;
    }
}

static struct last *running(const struct finder *finder, enum queue queue)
{
    return &finder->running[(size_t)queue * (size_t)finder->atom_count];
}

static struct last *table(const struct finder *finder, int section, enum queue queue)
{
    return &finder->whole[((size_t)section * QUEUES + queue) * (size_t)finder->atom_count];
}

static void note_sections(struct finder *finder)
{
    const struct program *p = finder->program;
    const struct span *end;
    size_t cells = (size_t)finder->atom_count * QUEUES;
    finder->whole = xcalloc(cells * SECTIONS, sizeof *finder->whole);
    finder->running = xcalloc(cells, sizeof *finder->running);
    memset(finder->whole, 0xff, cells * SECTIONS * sizeof *finder->whole);
    for (int section = 0; section < SECTIONS; section++) {
        struct range range = p->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            for (const struct span *span = spans_of(finder, i, &end); span < end; span++)
                note(table(finder, section, p->instructions[i].queue), span, i);
    }
}

static int latest(const struct last *lasts, const struct span *span)
{
    int index = -1;
    for (int atom = span->first; atom < span->end; atom++) {
        int other = span->writes ? lasts[atom].access : lasts[atom].write;
        index = other > index ? other : index;
    }
    return index;
}

static bool is_event(int section)
{
    return section == SECTION_FORWARD || section == SECTION_BACKWARD;
}

/* Can a run of section `other` come before one of `section` in a step? Forwards and backwards
 * alternate and repeat; all other sections run once, in order. */
static bool may_precede(int other, int section)
{
    return is_event(section) ? other <= SECTION_BACKWARD : other < section;
}

static void add_wait(struct program *p, struct instruction *instruction, int index)
{
    p->waits = grow(p->waits, p->wait_count, &p->wait_capacity, sizeof *p->waits);
    p->waits[p->wait_count++] = index;
    instruction->wait_count++;
}

/* The last instruction of the communication queue in the reduce section, or -1. The metrics wait
 * for it: a rank that has contributed its sums then has all of its gradients, including those that
 * it does not count, and can finish the step without the others. */
static int last_reduction(const struct program *p)
{
    struct range reduce = p->sections[SECTION_REDUCE];
    int last = reduce.first + reduce.count - 1;
    while (last >= reduce.first && p->instructions[last].queue != QUEUE_COMMUNICATION)
        last--;
    return last >= reduce.first ? last : -1;
}

/* Finds the waits of one instruction. *settled is the last instruction of the other queue for which
 * an earlier one of this section has already waited. */
static void find_waits(struct finder *finder, int section, int index, int *settled)
{
    struct program *p = finder->program;
    struct instruction *instruction = &p->instructions[index];
    enum queue other = program_other_queue(instruction->queue);
    int found[SECTIONS], here = -1;
    const struct span *end, *spans = spans_of(finder, index, &end);
    memset(found, 0xff, sizeof found);
    if (section == SECTION_METRICS)
        found[SECTION_REDUCE] = last_reduction(p);
    instruction->wait_first = (int)p->wait_count;
    for (const struct span *span = spans; span < end; span++) {
        for (int s = 0; s < SECTIONS; s++) {
            int last = may_precede(s, section) ? latest(table(finder, s, other), span) : -1;
            found[s] = last > found[s] ? last : found[s];
        }
        int last = latest(running(finder, other), span);
        here = last > here ? last : here;
    }
    if (here > *settled) {
        add_wait(p, instruction, here);
        *settled = here;
    }
    for (int s = 0; s < SECTIONS; s++)
        if (found[s] >= 0 && found[s] != here)
            add_wait(p, instruction, found[s]);
    for (const struct span *span = spans; span < end; span++)
        note(running(finder, instruction->queue), span, index);
}

void waits_find(struct program *program)
{
    struct finder finder = {.program = program};
    if (!program_overlaps(program))
        return;
    cut(&finder);
    find_spans(&finder);
    note_sections(&finder);
    for (int section = 0; section < SECTIONS; section++) {
        struct range range = program->sections[section];
        int settled[QUEUES] = {-1, -1};
        memset(finder.running, 0xff, (size_t)finder.atom_count * QUEUES * sizeof *finder.running);
        for (int i = range.first; i < range.first + range.count; i++)
            find_waits(&finder, section, i, &settled[program->instructions[i].queue]);
    }
    for (int region = 0; region < REGIONS; region++)
        free(finder.atoms[region].ends);
    free(finder.spans);
    free(finder.of);
    free(finder.whole);
    free(finder.running);
}
