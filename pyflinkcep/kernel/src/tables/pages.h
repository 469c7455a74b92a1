/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of Parquet: numbers of 4 or 8 bytes, none of which is NULL, and texts of dictionaries as
 * codes. What is not read here, or damaged, is an error, after which Arrow reads the file.
 */
#ifndef PYFLINKCEP_PAGES_H
#define PYFLINKCEP_PAGES_H

#include "base/memory.h"

/* page_headers.c */
enum { PAGE_OF_DATA = 0, PAGE_OF_DICTIONARY = 2, PAGE_OF_DATA_V2 = 3 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };

typedef struct {
    int32_t type, size, stored; /* bytes of the page, and of what is stored of it */
    int32_t values, encoding;
    int32_t levels_encoding;            /* of the first version */
    int32_t nulls, levels,
        repetitions; /* of the second version: bytes of levels before the values */
    bool is_compressed;
} PageHeader;

/* Read a header; return where the page begins, NULL if there is no header. */
const uint8_t *page_header(const uint8_t *at, const uint8_t *end, PageHeader *header);

/* snappy.c */
enum { MOST_UNPACKED = 64 }; /* more bytes than this do not come of one, on the average */
enum { SLACK = 16 }; /* bytes behind an array that may be read, and written, beside its own */

/*
 * Decompress `stored` bytes to exactly `size` ones; return whether they are what they should be. There
 * are SLACK more bytes of room.
 */
bool unpack_snappy(const uint8_t *from, size_t stored, uint8_t *to, size_t size);

/* pages.c */
extern PyType_Spec pages_spec;

/*
 * texts(data, is_snappy) -> (ends, texts): where each text of a page that is a dictionary begins and
 * ends (int32) among the bytes of all; None if the page is of another form.
 */
PyObject *module_texts(PyObject *module, PyObject *args);

#endif
