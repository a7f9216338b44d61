/* nodelist.h - reports as the recorded cluster that hardware_reports_from_json() reads. */
#ifndef TESTS_SUPPORT_NODELIST_H
#define TESTS_SUPPORT_NODELIST_H

#include "common/hardware/hardware.h"

json_t *hardware_reports_to_json(struct hardware_report *const *reports, size_t count);

#endif
