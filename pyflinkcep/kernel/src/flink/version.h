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

/* Return a version with one more digit after its parent's; NULL without memory. */
Version *version_following(Version *parent, int64_t digit);
/* Return a version with its last digit greater by `times`. */
Version *version_increase(Version *version, int64_t times);
/* Return a version with a 0 after its digits. */
Version *version_add_stage(Version *version);
/* Count one more reference to a version, and return it. */
Version *version_keep(Version *version);
/* Drop a reference to a version; free it with the last one. */
void version_drop(Version *version);
/* Whether two versions have the same digits. */
bool version_same(const Version *left, const Version *right);
/* Return whether a run of `version` may walk an edge of version `other`. */
bool version_compatible(const Version *version, const Version *other);

#endif
