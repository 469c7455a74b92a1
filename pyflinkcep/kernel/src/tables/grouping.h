/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events put together by key. All give Python's lock up, so that parts of a table are worked on at
 * one time: each part has a Numbering of its own, and writes to places of its own.
 */
#ifndef PYFLINKCEP_GROUPING_H
#define PYFLINKCEP_GROUPING_H

#include "base/arrays.h"

/* Ask for memory that is written to soon. */
#ifdef __GNUC__
#define SOON_WRITTEN(place) __builtin_prefetch(place, 1)
#else
#define SOON_WRITTEN(place) (void)(place)
#endif

/* How many events ahead what their keys have is fetched, if it is too much for the fastest cache. */
enum { AHEAD = 24, FEW = 1 << 13 };

/* numbering.c */
extern PyType_Spec numbering_spec;

/* grouping.c */
/*
 * scatter(codes, starts, sources, records, offsets, first): write what each event has in each source
 * to the next record of its code, from an offset on, and move that place on. The records are those
 * of the places from the first one on; events whose places are others stay where they are.
 */
PyObject *module_scatter(PyObject *module, PyObject *args);
/*
 * add_bits(values, width, least, table, bits): add to the bits of each event what a table has for its value,
 * from the least one on.
 */
PyObject *module_add_bits(PyObject *module, PyObject *args);
/* least(codes, times, least): lower the least time of each code to that of its events. */
PyObject *module_least(PyObject *module, PyObject *args);
/* order_within(bounds, times) -> the stable order by time within each stretch, or None as it is. */
PyObject *module_order_within(PyObject *module, PyObject *args);

/* wanting.c */
/*
 * wanted(ends, numbers, width, rows, groups, asked_ends, rules, bits, count): the places of the
 * events that each rule wants, their bits, and where those of each key begin, with the rule of each.
 */
PyObject *module_wanted(PyObject *module, PyObject *args);
/* ordering.c */
/* order_of(numbers) -> the stable order of at least one number. */
PyObject *module_order_of(PyObject *module, PyObject *numbers);
/* hashing.c */
/*
 * hash_values(values, width, data, hashes): replace each number by the hash of a value of that seed:
 * an integer of `width` bytes, or the bytes between two of these in `data`, unless that is None.
 */
PyObject *module_hash_values(PyObject *module, PyObject *args);

#endif
