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

/* Begin without runs; `live` has by state the slots that distinguish runs. */
int pattern_runs_open(PatternRuns *runs, Kernel *kernel, PyObject *live);
/* Release all memory, the runs' too. */
void pattern_runs_close(PatternRuns *runs);
/* Discard all runs. */
void pattern_runs_clear(PatternRuns *runs);
/* End the runs whose window has passed; `now` grows by those that waited for that. */
int pattern_runs_advance(PatternRuns *runs, int64_t time);
/* Process the current event for all runs; `now` grows by the matches that end with it. */
int pattern_runs_show(PatternRuns *runs);
/* Find when the first of some runs still alive began; return false if there is none. */
bool pattern_runs_begun(const PatternRuns *runs, int64_t *time);
/* Find when the first window of a run ends; return false if none does. */
bool pattern_runs_deadline(const PatternRuns *runs, int64_t *deadline);

/* pattern_counts.c */
/*
 * count(live, times, bits, bounds, held, before, watermark, weights, stage, seeks_greatest)
 * -> ((places, numbers, weights), begun, deadline)
 *
 * Process each key's events, and count its matches by event. A place is the position of the event;
 * for matches that only the watermark ends, it is the negative of where the key's events end.
 * `begun` and `deadline` are of the last key's partial matches.
 */
PyObject *kernel_count(Kernel *kernel, PyObject *args);

#endif
