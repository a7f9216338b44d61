/* report.h - prints what a visit has found, for people and for programs. */
#ifndef COORDINATOR_CLI_DOCTOR_REPORT_H
#define COORDINATOR_CLI_DOCTOR_REPORT_H

#include "coordinator/cli/doctor/visit.h"

void report_print(const struct visit *visit, const struct findings *findings, FILE *out);
/* EXIT_DONE, EXIT_WARNED or EXIT_BLOCKED, according to the worst finding. */
int report_exit(const struct findings *findings);

#endif
