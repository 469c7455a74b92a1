/* SPDX-License-Identifier: Apache-2.0 */
/* The partial matches of a pattern, equal ones merged. */
#ifndef PYFLINKCEP_PATTERN_RUNS_H
#define PYFLINKCEP_PATTERN_RUNS_H

#include "compressed/merged.h"
#include "flink/kernel.h"

typedef struct {
    Kernel *kernel;
    Live *live;    /* by state what distinguishes runs */
    Value *known;  /* room for it */
    RunList *alive; /* by state */
    RunTable table, fresh; /* the live ones, those that the current event made */
    RunList made;
    Starts starts; /* without a window all runs share one start */
    Weighing weighing;
    Ended now; /* with the current event, or with time */
} PatternRuns;

int pattern_runs_open(PatternRuns *runs, Kernel *kernel, PyObject *live);
void pattern_runs_close(PatternRuns *runs);
void pattern_runs_clear(PatternRuns *runs);
int pattern_runs_advance(PatternRuns *runs, int64_t time);
int pattern_runs_show(PatternRuns *runs);
bool pattern_runs_begun(const PatternRuns *runs, int64_t *time);
bool pattern_runs_deadline(const PatternRuns *runs, int64_t *deadline);

/* pattern_counts.c */
PyObject *kernel_count(Kernel *kernel, PyObject *args);

#endif
