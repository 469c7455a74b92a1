/* SPDX-License-Identifier: Apache-2.0 */
/* The ways that runs took through the buffer; see extract_patterns in sharedbuffer/buffer.py. */
#include "kernel.h"

void path_push(Path *path, int32_t stage, Entry *entry) {
    if (path->size == path->room) {
        path->room = path->room ? path->room * 2 : 64;
        path->steps = must_grow(path->steps, (size_t)path->room * sizeof(PathStep));
    }
    path->steps[path->size++] = (PathStep){stage, entry};
}

static void turn(Path *path) {
    for (Py_ssize_t i = 0, j = path->size - 1; i < j; i++, j--) {
        PathStep step = path->steps[i];
        path->steps[i] = path->steps[j];
        path->steps[j] = step;
    }
}

static bool take_first(void *context, const Path *path) {
    Path *taken = context;
    for (Py_ssize_t i = 0; i < path->size; i++)
        path_push(taken, path->steps[i].stage, path->steps[i].entry);
    return false;
}

/* Fill `path` with the first of a run's ways; false when there is none. */
bool path_of_run(Path *path, Node *node, Version *version) {
    path->size = 0;
    for (Node *current = node; current != NULL; current = current->edges[0].target) {
        if (current->edge_count != 1) {
            path->size = 0;
            paths_of_run(node, version, take_first, path);
            return path->size > 0;
        }
        path_push(path, current->stage, current->entry);
    }
    turn(path);
    return true;
}

typedef struct Cell {
    Node *node;
    struct Cell *next; /* towards the end of the match */
    struct Cell *made; /* the cell made before, to free them all */
} Cell;

typedef struct {
    Node *node;
    Version *version;
    Cell *path;
} Visit;

/* Visit all ways of a run in Flink's order until `visit` gives false; say if it never did. */
bool paths_of_run(Node *node, Version *version, PathVisitor visit, void *context) {
    Py_ssize_t size = 1, room = 16;
    Visit *work = must_alloc((size_t)room * sizeof(Visit));
    Cell *cells = NULL;
    Path path = {0};
    bool goes_on = true;
    work[0] = (Visit){node, version, NULL};
    while (size > 0 && goes_on) {
        Visit current = work[--size];
        if (current.node == NULL) {
            path.size = 0;
            for (Cell *cell = current.path; cell != NULL; cell = cell->next)
                path_push(&path, cell->node->stage, cell->node->entry);
            goes_on = visit(context, &path);
            continue;
        }
        Cell *cell = must_alloc(sizeof(Cell));
        *cell = (Cell){current.node, current.path, cells};
        cells = cell;
        for (int32_t i = 0; i < current.node->edge_count; i++) {
            Edge *edge = &current.node->edges[i];
            if (!version_compatible(current.version, edge->version)) continue;
            if (size == room) {
                room *= 2;
                work = must_grow(work, (size_t)room * sizeof(Visit));
            }
            work[size++] = (Visit){edge->target, edge->version, cell};
        }
    }
    while (cells != NULL) {
        Cell *made = cells->made;
        release_memory(cells);
        cells = made;
    }
    if (path.steps != NULL) release_memory(path.steps);
    release_memory(work);
    return goes_on;
}
