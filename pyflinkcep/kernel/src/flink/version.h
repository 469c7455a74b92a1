/* SPDX-License-Identifier: Apache-2.0 */
/* Dewey numbers: the versions that distinguish the runs sharing one buffer. */
#ifndef PYFLINKCEP_VERSION_H
#define PYFLINKCEP_VERSION_H

#include "base/memory.h"

typedef struct Version {
    struct Version *parent;
    uint64_t code; /* a hash of all digits */
    int64_t digit;
    int64_t memory;
    int32_t length;
    uint32_t root; /* the first digit, cut to 32 bits */
} Version;

Version *version_following(Version *parent, int64_t digit);
Version *version_increase(Version *version, int64_t times);
Version *version_add_stage(Version *version);
Version *version_keep(Version *version);
void version_drop(Version *version);
bool version_same(const Version *left, const Version *right);
bool version_compatible(const Version *version, const Version *other);

#endif
