/* survey.h - finds the devices beside the cores, and measures all of them, by executors that run
 * when the worker starts. The worker itself links no device library. */
#ifndef WORKER_NODE_SURVEY_H
#define WORKER_NODE_SURVEY_H

#include "worker/hardware/hardware.h"

struct survey {
    const char *shim, *program;
    const char *cpuset; /* that executors run on */
    double crowd;       /* devices that share a core, from hardware_crowd() */
    size_t devices;     /* most devices that one executor measures */
    const char *cache;  /* folder of measurements of cores; NULL: none are kept */
    bool measure;       /* measure even if there are some */
    int stop_fd;        /* readable: stop waiting; it is not read here */
};

/* Let an executor look for devices of a kind; NULL: of all kinds. Finding none is a success, with
 * the reason in *out, which the caller finishes. */
int survey_find(const struct survey *survey, const char *kind, struct hardware_found *out,
                struct error *err);
/* Measure the report's CPU devices all at once, other devices one by one, and then the links
 * between those. Sets profiles, rates, and the time of the oldest measurement: cores keep a
 * measurement of the last days, if there is one. Waits for the executors, a second or two each.
 * -ETIMEDOUT: one does not compute, or does not come to an end; -EINTR: stop_fd became readable. */
int survey_measure(const struct survey *survey, struct hardware_report *report, struct error *err);

#endif
