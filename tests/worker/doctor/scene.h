/* scene.h - a machine of a test's own: settings that fit this one, and folders that look like the
 * kernel's. */
#ifndef TESTS_WORKER_DOCTOR_SCENE_H
#define TESTS_WORKER_DOCTOR_SCENE_H

#include "worker/doctor/examination.h"

extern struct examination scene;
extern struct worker_settings scene_settings;
extern char scene_folder[32];

/* For a checked fixture. A report of two devices of 1 GiB, and a core for each. */
void scene_open(void);
void scene_close(void);
/* Write a file below the folder, and the folders that it is in. */
void scene_put(const char *name, const char *text);
/* Run one check: its findings, as "VERDICT: FOUND" lines, have these words, or there are none for
 * NULL; whatever is not well says what would be right. */
void scene_says(const struct doctor_check *check, const char *words);
/* From here on this process is refused the system call, with EPERM. */
void scene_refuse(int call);

#endif
