/* SPDX-License-Identifier: Apache-2.0 */
/* The ways that runs took through the buffer. Mirror: extract_patterns in engines/flink/sharedbuffer.py. */
#include "flink/buffer.h"

int path_push(Path *path, int32_t stage, Entry *entry) {
    PathStep *steps = reserve(path->steps, &path->room, path->size + 1, sizeof(PathStep));
    if (steps == NULL) return -1;
    path->steps = steps;
    path->steps[path->size++] = (PathStep){stage, entry};
    return 0;
}

static void turn(Path *path) {
    for (Py_ssize_t i = 0, j = path->size - 1; i < j; i++, j--) {
        PathStep step = path->steps[i];
        path->steps[i] = path->steps[j];
        path->steps[j] = step;
    }
}

static int take_first(void *context, const Path *path) {
    Path *taken = context;
    for (Py_ssize_t i = 0; i < path->size; i++)
        if (path_push(taken, path->steps[i].stage, path->steps[i].entry) < 0) return -1;
    return 0;
}

/* Return the only edge by which a run may have come to a node; NULL if there are none, or several. */
static const Edge *only_way(const Node *node, const Version *version) {
    int32_t place = node_way(node, version, 0);
    if (place == node->edge_end || node_way(node, version, place + 1) < node->edge_end) return NULL;
    return &node->edges[place];
}

/* Do what path_of_run does where nodes have several edges. */
static int path_of_versions(Path *path, Node *node, Version *version) {
    const Version *now = version;
    path->size = 0;
    for (const Node *current = node; current != NULL;) {
        const Edge *edge = only_way(current, now);
        if (edge == NULL) {
            path->size = 0;
            return paths_of_run(node, version, take_first, path) < 0 ? -1 : 0;
        }
        if (path_push(path, current->stage, current->entry) < 0) return -1;
        now = edge->version;
        current = edge->target;
    }
    turn(path);
    return 0;
}

int path_of_run(Path *path, Node *node, Version *version) {
    path->size = 0;
    for (Node *current = node; current != NULL; current = current->edges[0].target) {
        if (current->edge_count != 1) return path_of_versions(path, node, version);
        if (path_push(path, current->stage, current->entry) < 0) return -1;
    }
    turn(path);
    return 0;
}

typedef struct Cell {
    Node *node;
    struct Cell *next; /* towards the end of the match */
    struct Cell *made; /* the cell allocated before, to free them all */
} Cell;

typedef struct {
    Node *node;
    Version *version;
    Cell *path;
} Visit;

typedef struct {
    Visit *items; /* still to make */
    Py_ssize_t size, room;
    Cell *cells;
} Walk;

static int visit_later(Walk *walk, Node *node, Version *version, Cell *path) {
    Visit *items = reserve(walk->items, &walk->room, walk->size + 1, sizeof(Visit));
    if (items == NULL) return -1;
    walk->items = items;
    walk->items[walk->size++] = (Visit){node, version, path};
    return 0;
}

/* Go on from a node by each edge that the run may have come by. */
static int walk_on(Walk *walk, Visit from) {
    Cell *cell = allocate(sizeof(Cell));
    if (cell == NULL) return -1;
    *cell = (Cell){from.node, from.path, walk->cells};
    walk->cells = cell;
    for (int32_t i = node_way(from.node, from.version, 0); i < from.node->edge_end;
        i = node_way(from.node, from.version, i + 1)) {
        const Edge *edge = &from.node->edges[i];
        if (visit_later(walk, edge->target, edge->version, cell) < 0) return -1;
    }
    return 0;
}

static void walk_free(Walk *walk) {
    while (walk->cells != NULL) {
        Cell *made = walk->cells->made;
        release_memory(walk->cells);
        walk->cells = made;
    }
    release_memory(walk->items);
}

int paths_of_run(Node *node, Version *version, PathVisitor visit, void *context) {
    Walk walk = {0};
    Path path = {0};
    int status = visit_later(&walk, node, version, NULL) < 0 ? -1 : 1;
    while (status > 0 && walk.size > 0) {
        Visit current = walk.items[--walk.size];
        if (current.node != NULL) {
            if (walk_on(&walk, current) < 0) status = -1;
            continue;
        }
        path.size = 0;
        for (Cell *cell = current.path; cell != NULL && status > 0; cell = cell->next)
            if (path_push(&path, cell->node->stage, cell->node->entry) < 0) status = -1;
        if (status > 0) status = visit(context, &path);
    }
    walk_free(&walk);
    release_memory(path.steps);
    return status;
}
