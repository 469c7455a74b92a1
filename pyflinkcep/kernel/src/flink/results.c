/* SPDX-License-Identifier: Apache-2.0 */
/* Results as arrays: matches, timeouts and stages reached, their times and their events. No mirror in Python. */
#include "flink/key.h"

int found_event(Found *found, int32_t stage, int64_t handle) {
    if (found->events == found->event_room) {
        Py_ssize_t room = found->event_room, needed = found->events + 1;
        int32_t *stages = reserve(found->stages, &room, needed, sizeof(int32_t));
        if (stages == NULL) return -1;
        found->stages = stages;
        room = found->event_room;
        int64_t *handles = reserve(found->handles, &room, needed, sizeof(int64_t));
        if (handles == NULL) return -1;
        found->handles = handles;
        found->event_room = room;
    }
    found->stages[found->events] = stage;
    found->handles[found->events++] = handle;
    return 0;
}

int found_path(Found *found, const Path *path) {
    for (Py_ssize_t i = 0; i < path->size; i++)
        if (found_event(found, path->steps[i].stage, path->steps[i].entry->handle) < 0) return -1;
    return 0;
}

int found_end(Found *found, uint8_t kind, int64_t timestamp) {
    if (found->size == found->room) {
        Py_ssize_t room = found->room, needed = found->size + 1;
        uint8_t *kinds = reserve(found->kinds, &room, needed, sizeof(uint8_t));
        if (kinds == NULL) return -1;
        found->kinds = kinds;
        room = found->room;
        int64_t *times = reserve(found->times, &room, needed, sizeof(int64_t));
        if (times == NULL) return -1;
        found->times = times;
        room = found->room;
        int64_t *ends = reserve(found->ends, &room, needed, sizeof(int64_t));
        if (ends == NULL) return -1;
        found->ends = ends;
        found->room = room;
    }
    found->kinds[found->size] = kind;
    found->times[found->size] = timestamp;
    found->ends[found->size++] = found->events;
    return 0;
}

void found_forget_open(Found *found) {
    found->events = found->size > 0 ? (Py_ssize_t)found->ends[found->size - 1] : 0;
}

void found_empty(Found *found) {
    found->size = found->events = 0;
    found->dropped = 0;
}

void found_free(Found *found) {
    release_memory(found->kinds);
    release_memory(found->times);
    release_memory(found->ends);
    release_memory(found->stages);
    release_memory(found->handles);
}

int matches_add(
    Matches *matches, const Partial *partial, const Path *path, int64_t time, int32_t last_stage,
    int64_t last_handle) {
    FoundMatch *items =
        reserve(matches->items, &matches->room, matches->size + 1, sizeof(FoundMatch));
    if (items == NULL) return -1;
    matches->items = items;
    FoundMatch *match = &matches->items[matches->size++];
    match->start_timestamp = partial->start_timestamp;
    match->start_id = partial->start_id;
    match->time = time;
    match->first = matches->found.events;
    if (found_path(&matches->found, path) < 0) return -1;
    if (last_stage >= 0 && found_event(&matches->found, last_stage, last_handle) < 0) return -1;
    match->end = matches->found.events;
    return 0;
}

void matches_empty(Matches *matches) {
    matches->size = 0;
    found_empty(&matches->found);
}

void matches_free(Matches *matches) {
    release_memory(matches->items);
    found_free(&matches->found);
}
