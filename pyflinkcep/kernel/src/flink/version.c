/* SPDX-License-Identifier: Apache-2.0 */
/* Dewey numbers that share their prefixes. Mirror: engines/flink/sharedbuffer.py. */
#include "flink/version.h"

static uint64_t mixed(uint64_t code, int64_t digit) {
    uint64_t z = code * 0x9E3779B97F4A7C15u + (uint64_t)digit + 1;
    z = (z ^ (z >> 29)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 32);
}

Version *version_following(Version *parent, int64_t digit) {
    Version *version = allocate_small(sizeof(Version));
    if (version == NULL) return NULL;
    version->parent = parent == NULL ? NULL : version_keep(parent);
    version->digit = digit;
    version->length = parent == NULL ? 1 : parent->length + 1;
    version->root = parent == NULL ? (uint32_t)digit : parent->root;
    version->code = mixed(parent == NULL ? 0 : parent->code, digit);
    version->memory = 1;
    return version;
}

Version *version_increase(Version *version, int64_t times) {
    if (times == 0) return version_keep(version);
    return version_following(version->parent, version->digit + times);
}

Version *version_add_stage(Version *version) { return version_following(version, 0); }

Version *version_keep(Version *version) {
    version->memory++;
    return version;
}

void version_drop(Version *version) {
    while (version != NULL && --version->memory == 0) {
        Version *parent = version->parent;
        release_small(version, sizeof(Version));
        version = parent;
    }
}

bool version_same(const Version *left, const Version *right) {
    while (left != right) {
        if (left == NULL || right == NULL || left->code != right->code ||
            left->digit != right->digit || left->length != right->length)
            return false;
        left = left->parent;
        right = right->parent;
    }
    return true;
}

bool version_compatible(const Version *version, const Version *other) {
    const Version *number = version->parent;
    if (number == other) return true; /* by far the most frequent case */
    int32_t longer = version->length - other->length;
    if (longer <= 0)
        return longer == 0 && version->digit >= other->digit && version_same(number, other->parent);
    for (; longer > 1; longer--) number = number->parent;
    return number->code == other->code && version_same(number, other);
}
