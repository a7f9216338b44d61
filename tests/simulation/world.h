/* world.h - a cluster in one process and in virtual time, drawn from a seed.
 *
 * Real are the coordinator (coordinator/service with everything that decides behind it), the
 * worker (its supervisor, its calls, its relay and its care for executors) and all of common/rpc.
 * Simulated is what they stand on: NNG (nng.c, network.c), the clock and random numbers
 * (world.c), the store's disk (disk.c), the planner (planner.c) and the executors' processes
 * (executors.c). Those files define the same functions as the libraries do, so that the linker
 * takes them; no product code knows that it is simulated.
 *
 * One world at a time. All of it follows from the seed: a failure prints the line that replays
 * it. */
#ifndef TESTS_SIMULATION_WORLD_H
#define TESTS_SIMULATION_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measured;
struct event; /* something that will happen, unless it is cancelled */
typedef void (*event_cb)(void *data);

/* Something with sockets that may be killed: a coordinator, a worker, a user. */
struct actor {
    const char *name;
    void (*poll_cb)(struct actor *actor); /* its turn: something has come, or is due */
    void (*die_cb)(struct actor *actor);  /* when its last effect was taken away */
    struct event *poll, *timer;
    uint64_t timer_ms;
    uint64_t busy_until_ms;  /* its last turn takes so long */
    uint64_t turn_ms, turns; /* when its last turn was, and how many it had in that millisecond */
    bool doomed;             /* it is killed: what it does from here on has no effect */
    uint64_t effects_left;   /* 0: it lives on; 1: the next effect is the first without effect */
    /* The way between it and the coordinator, of a worker or a user. */
    bool cut;                             /* swallows everything, and closes nothing */
    uint32_t delay_ms_min, delay_ms_most; /* of a message */
    struct actor *server;                 /* whom it reaches when it dials */
    struct pipe *pipes;                   /* all it ever had, the newest first */
};

/* How bad the world is; all probabilities are per mille of what they are about. */
struct faults {
    unsigned crash_effect; /* a coordinator's start: it dies after some effect */
    unsigned outage;       /* a coordinator's death: it stays away for a minute */
    unsigned commit;       /* a commit fails */
    unsigned commit_slow;  /* a commit takes seconds, in which the coordinator does nothing else */
    unsigned full;         /* a look for room: the disk is full for up to a minute */
    unsigned planner_slow, planner_unfit, planner_refused;
    unsigned start;           /* of an epoch: it is the worst moment for whatever else happens */
    uint64_t worker_every_ms; /* between two misfortunes of workers, on average; 0: none */
    unsigned executor_fault;  /* a rank of an executor: it faults one day */
    unsigned executor_stubborn, executor_wrong_hash;
    unsigned impostor; /* a coordinator's start: another one starts from an older disk */
    unsigned calendar; /* a coordinator's start: its calendar has jumped */
    unsigned slow_network;
    bool calm_hearts; /* workers are heard of every four seconds in place of one */
    unsigned echo;    /* a message of a worker: it comes once more, much later */
};

struct world_options {
    uint64_t seed;
    bool big;   /* 1000 workers and 2 hours, in place of 8 to 32 and 10 minutes */
    bool trace; /* print what happens */
    bool cell;  /* of the fault matrix, and nothing else that is bad: matrix.h */
    size_t row;
    unsigned column;
    const struct measured *measured; /* of a cluster like this, measured.h; NULL: all is drawn */
};

/* What a run has seen, so that its caller knows that it saw something. */
struct tally {
    uint64_t events, calls, commits, coordinators, crashes, submitted, done, failed, cancelled;
    uint64_t executors, workers_killed, cuts, impostors, refused_impostors, watched, stale, waiting;
    uint64_t applied, reached; /* steps, by ranks; the furthest that any job came */
    uint64_t struck;           /* faults of the matrix, or losses of a measured world */
    uint64_t excused_stops, stayed, gave, inherited, saved, storms,
        storm_worst; /* per mille of workers in 10 ms */
};

struct world {
    struct world_options options;
    uint64_t draws, now_ms, busy_ms; /* busy: how long the current actor's turn has taken */
    uint64_t end_ms;                 /* then nothing bad happens any more */
    bool calm;
    struct actor *current;                  /* whose code runs */
    void (*echoes_of)(struct actor *actor); /* the turn of those whose messages may echo */
    struct faults faults;
    struct tally tally;
    struct event **heap;
    size_t heap_count, heap_capacity;
    uint64_t next_event;
};

extern struct world *world;

/* Run one from its seed to its end; prints and exits with 1 where something is wrong. */
void simulate(const struct world_options *options, struct tally *tally);

/* Let the next thing happen; false when there is none before that time. */
bool world_step(uint64_t until_ms);
void world_drop_events(void);
/* In so many milliseconds; lent until it has happened or is cancelled. */
struct event *world_after(uint64_t delay_ms, event_cb callback, void *data);
/* Accepts NULL. */
void world_cancel(struct event *event);
/* A random number below bound, and whether so many in a thousand. */
uint64_t world_draw(uint64_t bound);
uint64_t world_between(uint64_t least, uint64_t most);
bool world_chance(unsigned per_mille);
/* The clock of whoever runs. */
uint64_t world_now_ms(void);
_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void world_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Let it have its turn soon, and at a time of its clock (UINT64_MAX: never). */
void actor_wake(struct actor *actor);
void actor_wake_at(struct actor *actor, uint64_t at_ms);
/* It is about to do something that others can see: false when it did not come to that. */
bool actor_effect(struct actor *actor);
/* From now on nothing that it does has an effect; die_cb follows. */
void actor_doom(struct actor *actor);
/* No turn any more. */
void actor_forget(struct actor *actor);
struct actor *actor_enter(struct actor *actor);
void actor_leave(struct actor *before);

/* nng.c, network.c */
void network_open(void);
void network_close(void);
/* The actor's machine is gone without a word: its peers do not hear of it soon. */
void network_vanish(struct actor *actor);
/* Close one of its connections. */
void network_break(struct actor *actor);
void network_heal(struct actor *actor);

/* children.c */
void executors_open(void);
void executors_close(void);
void executors_kill_node(const char *node);
size_t executors_count(void);

#endif
