/* modes.h - the modes in which a gimbal-executor process can run. */
#ifndef WORKER_EXECUTOR_MODES_H
#define WORKER_EXECUTOR_MODES_H

#include "common/base/error.h"

#include "worker/hardware/cpuset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The command line; main.c has the usage text. Pointers are NULL where the option is missing. */
struct executor_options {
    int channel;      /* descriptor; -1: none */
    int trail;        /* descriptor of the trail (worker/trail); -1: none */
    int state;        /* descriptor of the file for the state; -1: none */
    int report;       /* descriptor that an error without a channel is written to; -1: the log */
    int local;        /* number of ranks to run as threads; 0: not this mode */
    const char *job;  /* file name of the job */
    const char *plan; /* file name of the plan, as JSON */
    bool probe;
    bool links;           /* with probe: measure the links between the named devices */
    const char *devices;  /* cores of each device, as sets */
    const char *device;   /* what the ranks compute on; NULL: the cores */
    const char *list;     /* kind of devices to list; "": all kinds */
    const char *verify;   /* folder of a checkpoint to verify */
    const char *export;   /* folder of a checkpoint to export, with its job */
    const char *out;      /* folder to export to */
    int dtype;            /* enum element of exported weights */
    const char *generate; /* folder of a checkpoint whose model is to write text, with its job */
    const char *prompt;   /* text to continue; never NULL */
    int bytes;            /* length of the text to write */
    double temperature;
    int64_t seed;
    double crowd;           /* probe: devices that share a core, at least 1 */
    const char *checkpoint; /* local: folder of the training's checkpoints; NULL: none */
    bool resume;            /* local: continue from the newest checkpoint there */
    const char *from;       /* local: folder of another checkpoint to go on from; NULL: none */
    bool weights_only;      /* with from: begin at step 0, with its weights */
    const char *fabric;     /* probe: collectives to measure with; NULL: the default */
    const char *kept;       /* probe: folder of measurements kept from earlier */
    bool measure;           /* probe: measure even if a measurement is kept */
    const char *pack;       /* token file to write, from these texts */
    const char *const *names;
    size_t name_count;
    const char *tokenizer;   /* path of a tokenizer.json; pack: NULL: bytes are tokens; show: or
                              * "bytes"; NULL: what tokens stand for is not known */
    int input;               /* pack: descriptor of standard input, "-"; -1: none */
    const char *end_of_text; /* the token after every text; pack: "": the tokenizer's; or NULL */
    bool force;              /* pack: the file may replace another */
    bool show;               /* tell what the files of tokens hold */
    const char *format;      /* show: a word of job_formats; NULL: auto */
    const char *sentences;   /* log in sentences, from info or warn on; NULL: in lines */
    bool versions, help;     /* only print them, and end */
};

/* Each runs one mode to its end. Those with a channel report to the other side before they return.
 * -ECANCELED: cancelled. */
int executor_rank(const struct executor_options *options, struct error *err);
int executor_local(const struct executor_options *options, struct error *err);
int executor_probe(const struct executor_options *options, struct error *err);
int executor_links(const struct executor_options *options, struct error *err);
int executor_generate(const struct executor_options *options, struct error *err);
int executor_pack(const struct executor_options *options, struct error *err);
int executor_show(const struct executor_options *options, struct error *err);
int executor_list(const struct executor_options *options, struct error *err);

#endif
