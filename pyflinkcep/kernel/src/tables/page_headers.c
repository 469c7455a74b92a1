/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of pages, in Thrift's compact form. No mirror: without the kernel Arrow reads files. */
#include "tables/pages.h"

/* The types of fields. */
enum { STOP, YES, NO, INT_8, INT_16, INT_32, INT_64, FLOAT_64, BINARY, STRUCT = 12 };
enum { MOST_DEPTH = 8 };

typedef struct {
    const uint8_t *at, *end;
    bool failed;
} Source;

static uint64_t varint(Source *in) {
    uint64_t found = 0;
    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        found |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return found;
    }
    in->failed = true;
    return 0;
}

static int64_t whole(Source *in) {
    uint64_t found = varint(in);
    return (int64_t)(found >> 1) ^ -(int64_t)(found & 1);
}

static void skip_bytes(Source *in, uint64_t count) {
    if (count > (uint64_t)(in->end - in->at))
        in->failed = true;
    else
        in->at += count;
}

/* Read what a field is; return its type, and STOP behind the last one. */
static int next_field(Source *in, int64_t *id) {
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

static void skip(Source *in, int type, int depth) {
    int64_t id = 0;
    switch (type) {
    case YES:
    case NO: return;
    case INT_8: skip_bytes(in, 1); return;
    case INT_16:
    case INT_32:
    case INT_64: varint(in); return;
    case FLOAT_64: skip_bytes(in, 8); return;
    case BINARY: skip_bytes(in, varint(in)); return;
    case STRUCT:
        if (depth < MOST_DEPTH) {
            while ((type = next_field(in, &id)) != STOP) skip(in, type, depth + 1);
            return;
        }
        break;
    default: break;
    }
    in->failed = true; /* no header has lists or maps */
}

/* Read fields, those of some numbers to `numbers`, which NULL may stand for. */
static void read_numbers(Source *in, int32_t *const *numbers, int64_t count, bool *flag) {
    int64_t id = 0;
    int type;
    while ((type = next_field(in, &id)) != STOP) {
        bool is_known = id > 0 && id <= count && numbers[id - 1] != NULL;
        if (is_known && type == INT_32) {
            int64_t found = whole(in);
            in->failed = in->failed || found < 0 || found > INT32_MAX;
            *numbers[id - 1] = (int32_t)found;
        } else if (flag != NULL && id == 7 && (type == YES || type == NO)) {
            *flag = type == YES;
        } else {
            skip(in, type, 0);
        }
    }
}

const uint8_t *page_header(const uint8_t *at, const uint8_t *end, PageHeader *header) {
    Source in = {at, end, false};
    int64_t id = 0;
    int type;
    *header = (PageHeader){.type = -1, .encoding = -1, .is_compressed = true};
    int32_t *const first[] = {&header->values, &header->encoding, &header->levels_encoding};
    int32_t *const second[] = {&header->values, &header->nulls, NULL, &header->encoding,
        &header->levels, &header->repetitions};
    while ((type = next_field(&in, &id)) != STOP) {
        if (type == STRUCT && (id == 5 || id == 7)) {
            read_numbers(&in, first, 3, NULL);
        } else if (type == STRUCT && id == 8) {
            read_numbers(&in, second, 6, &header->is_compressed);
        } else if (type == INT_32 && id >= 1 && id <= 3) {
            int64_t found = whole(&in);
            if (found < 0 || found > INT32_MAX) return NULL;
            int32_t *numbers[] = {&header->type, &header->size, &header->stored};
            *numbers[id - 1] = (int32_t)found;
        } else {
            skip(&in, type, 0);
        }
    }
    return in.failed || header->stored > in.end - in.at ? NULL : in.at;
}
