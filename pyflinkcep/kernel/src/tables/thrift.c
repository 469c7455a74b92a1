/* SPDX-License-Identifier: Apache-2.0 */
/* Fields in Thrift's compact form. No mirror: without the kernel Arrow reads files. */
#include "tables/thrift.h"

enum { MOST_DEPTH = 8 };

uint64_t varint(Source *in) {
    uint64_t found = 0;
    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return found;
    }
    in->failed = true;
    return 0;
}

int64_t whole(Source *in) {
    uint64_t found = varint(in);
    return (int64_t)(found >> 1) ^ -(int64_t)(found & 1);
}

static void skip_bytes(Source *in, uint64_t count) {
    if (count > (uint64_t)(in->end - in->at))
        in->failed = true;
    else
        in->at += count;
}

int next_field(Source *in, int64_t *id) {
    if (in->failed || in->at == in->end) {
        in->failed = true;
        return STOP;
    }
    uint8_t head = *in->at++;
    if (head == STOP) return STOP;
    *id = head >> 4 ? *id + (head >> 4) : whole(in);
    if (*id < 0 || *id > INT16_MAX) in->failed = true;
    return head & 15;
}

uint64_t list_of(Source *in, int *type) {
    if (in->at == in->end) {
        in->failed = true;
        return 0;
    }
    uint8_t head = *in->at++;
    *type = head & 15;
    return head >> 4 < 15 ? head >> 4 : varint(in);
}

static void skip_inside(Source *in, int type, int depth);

static void skip_list(Source *in, int depth) {
    int type = STOP;
    uint64_t count = list_of(in, &type);
    while (!in->failed && count-- > 0)
        if (type == YES || type == NO)
            skip_bytes(in, 1);
        else
            skip_inside(in, type, depth);
}

static void skip_inside(Source *in, int type, int depth) {
    int64_t id = 0;
    bool is_deep = (type == STRUCT || type == LIST) && depth == MOST_DEPTH;
    switch (is_deep ? STOP : type) {
    case YES:
    case NO: return;
    case INT_8: skip_bytes(in, 1); return;
    case INT_16:
    case INT_32:
    case INT_64: varint(in); return;
    case FLOAT_64: skip_bytes(in, 8); return;
    case BINARY: skip_bytes(in, varint(in)); return;
    case LIST: skip_list(in, depth + 1); return;
    case STRUCT:
        while ((type = next_field(in, &id)) != STOP) skip_inside(in, type, depth + 1);
        return;
    default: in->failed = true; /* there are no maps or sets */
    }
}

void skip(Source *in, int type) { skip_inside(in, type, 0); }
