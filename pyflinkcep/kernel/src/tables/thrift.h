/* SPDX-License-Identifier: Apache-2.0 */
/* What files of Parquet tell of themselves: fields in Thrift's compact form. */
#ifndef PYFLINKCEP_THRIFT_H
#define PYFLINKCEP_THRIFT_H

#include "base/memory.h"

/* The types of fields. */
enum { STOP, YES, NO, INT_8, INT_16, INT_32, INT_64, FLOAT_64, BINARY, LIST, STRUCT = 12 };

typedef struct {
    const uint8_t *at, *end;
    bool failed; /* whether bytes are damaged, or of another form; then what is read is any */
} Source;

/* Read what a field is; return its type, and STOP behind the last one. */
int next_field(Source *in, int64_t *id);
int64_t whole(Source *in);
/* Read how many items a list has, and of which type. */
uint64_t list_of(Source *in, int *type);
uint64_t varint(Source *in);
void skip(Source *in, int type);

#endif
