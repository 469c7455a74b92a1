/* SPDX-License-Identifier: Apache-2.0 */
/* Snappy, decompressed. No mirror in Python: without the kernel Arrow reads files. */
#include "tables/pages.h"

#include <string.h>

typedef struct {
    const uint8_t *from, *end;
    uint8_t *begin, *to, *stop;
    /*
     * The last eight bytes, the first of them lowest. Times and other numbers that rise repeat most
     * bytes of the number before: to read these back from memory just written would take longest.
     */
    uint64_t last;
} Unpacking;

static uint64_t loaded(const uint8_t *bytes, int count) {
    uint64_t found = 0;
    for (int i = 0; i < count; i++) found |= (uint64_t)bytes[i] << 8 * i;
    return found;
}

static bool is_little_endian(void) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 1;
}

/* Note the last bytes after some that were not taken from `last`. */
static void look_back(Unpacking *own) {
    uint8_t bytes[8] = {0};
    size_t known = (size_t)(own->to - own->begin);
    if (known > 8) known = 8;
    memcpy(bytes + 8 - known, own->to - known, known);
    memcpy(&own->last, bytes, 8);
}

static bool add_literal(Unpacking *own, size_t count) {
    if (count > 60) {
        int extra = (int)count - 60;
        if (own->end - own->from < extra) return false;
        count = (size_t)loaded(own->from, extra) + 1;
        own->from += extra;
    }
    if (count > (size_t)(own->stop - own->to) || count > (size_t)(own->end - own->from))
        return false;
    memcpy(own->to, own->from, count);
    own->to += count;
    own->from += count;
    look_back(own);
    return true;
}

static bool add_copy(Unpacking *own, size_t count, size_t distance) {
    if (distance == 0 || distance > (size_t)(own->to - own->begin) ||
        count > (size_t)(own->stop - own->to))
        return false;
    const uint8_t *from = own->to - distance;
    if (distance >= 8 && count <= SLACK) {
        memcpy(own->to, from, 8);
        memcpy(own->to + 8, from + 8, 8);
    } else if (distance >= count)
        memcpy(own->to, from, count);
    else
        for (size_t i = 0; i < count; i++) own->to[i] = from[i];
    own->to += count;
    look_back(own);
    return true;
}

static bool add_next(Unpacking *own) {
    uint8_t tag = *own->from++;
    if ((tag & 3) == 0) return add_literal(own, (size_t)(tag >> 2) + 1);
    int bytes = (tag & 3) == 1 ? 1 : (tag & 3) == 2 ? 2 : 4;
    if (own->end - own->from < bytes) return false;
    size_t distance = (size_t)loaded(own->from, bytes);
    own->from += bytes;
    if (bytes == 1) return add_copy(own, 4 + (tag >> 2 & 7), (size_t)(tag >> 5) << 8 | distance);
    return add_copy(own, (size_t)(tag >> 2) + 1, distance);
}

/* Add literals and copies of a few bytes, the latter from eight before, while there are any. */
static void add_few(Unpacking *own) {
    const uint8_t *from = own->from, *end = own->end;
    uint8_t *to = own->to, *stop = own->stop;
    uint64_t last = own->last, next;
    while (end - from > 8) {
        uint8_t tag = *from;
        size_t count, used;
        if ((tag & 3) == 0 && tag < 7 << 2) {
            count = (size_t)(tag >> 2) + 1;
            used = count + 1;
            memcpy(&next, from + 1, 8);
        } else if ((tag & 0xE3) == 1 && tag < 4 << 2 && from[1] == 8 && to - own->begin >= 8) {
            count = 4 + (size_t)(tag >> 2);
            used = 2;
            next = last;
        } else {
            break;
        }
        if (count > (size_t)(stop - to)) break;
        memcpy(to, &next, 8);
        last = last >> 8 * count | next << (64 - 8 * count);
        to += count;
        from += used;
    }
    own->from = from;
    own->to = to;
    own->last = last;
}

bool unpack_snappy(const uint8_t *from, size_t stored, uint8_t *to, size_t size) {
    Unpacking own = {from, from + stored, to, to, to + size, 0};
    size_t told = 0;
    int shift = 0;
    do {
        if (own.from == own.end || shift > 28) return false;
        told |= (size_t)(*own.from & 127) << shift;
        shift += 7;
    } while (*own.from++ & 128);
    if (told != size || !is_little_endian()) return false;
    while (own.from < own.end) {
        add_few(&own);
        if (own.from < own.end && !add_next(&own)) return false;
    }
    return own.to == own.stop;
}
