/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64 of values, each from a seed of its own. Mirror: matching/spark_hash.py. */
#include "tables/grouping.h"

#include "base/lock.h"

#include <string.h>

/* The primes that the algorithm names. */
static const uint64_t FIRST = UINT64_C(0x9E3779B185EBCA87);
static const uint64_t SECOND = UINT64_C(0xC2B2AE3D27D4EB4F);
static const uint64_t THIRD = UINT64_C(0x165667B19E3779F9);
static const uint64_t FOURTH = UINT64_C(0x85EBCA77C2B2AE63);
static const uint64_t FIFTH = UINT64_C(0x27D4EB2F165667C5);

enum { BLOCK = 32, LANES = 4 };

static inline uint64_t turned(uint64_t number, int bits) {
    return number << bits | number >> (64 - bits);
}

static inline uint64_t lane_of(uint64_t sum, uint64_t word) {
    return turned(sum + word * SECOND, 31) * FIRST;
}

static inline uint64_t with_long(uint64_t hash, uint64_t word) {
    return turned(hash ^ lane_of(0, word), 27) * FIRST + FOURTH;
}

static inline uint64_t with_int(uint64_t hash, uint32_t word) {
    return turned(hash ^ word * FIRST, 23) * SECOND + THIRD;
}

static inline uint64_t with_byte(uint64_t hash, uint8_t byte) {
    return turned(hash ^ byte * FIFTH, 11) * FIRST;
}

static inline uint64_t finished(uint64_t hash) {
    hash = (hash ^ hash >> 33) * SECOND;
    hash = (hash ^ hash >> 29) * THIRD;
    return hash ^ hash >> 32;
}

static inline uint64_t long_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static inline uint32_t int_at(const uint8_t *bytes) {
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Return the hash of the whole blocks of a text, of which there is at least one. */
static uint64_t of_blocks(const uint8_t *bytes, const uint8_t *end, uint64_t seed) {
    uint64_t sums[LANES] = {seed + FIRST + SECOND, seed + SECOND, seed, seed - FIRST};
    for (; end - bytes >= BLOCK; bytes += BLOCK)
        for (int i = 0; i < LANES; i++) sums[i] = lane_of(sums[i], long_at(bytes + 8 * i));
    uint64_t hash =
        turned(sums[0], 1) + turned(sums[1], 7) + turned(sums[2], 12) + turned(sums[3], 18);
    for (int i = 0; i < LANES; i++) hash = (hash ^ lane_of(0, sums[i])) * FIRST + FOURTH;
    return hash;
}

static inline uint64_t of_text(const uint8_t *bytes, size_t size, uint64_t seed) {
    const uint8_t *end = bytes + size;
    uint64_t hash = (size < BLOCK ? seed + FIFTH : of_blocks(bytes, end, seed)) + size;
    bytes += size - size % BLOCK;
    for (; end - bytes >= 8; bytes += 8) hash = with_long(hash, long_at(bytes));
    if (end - bytes >= 4) {
        hash = with_int(hash, int_at(bytes));
        bytes += 4;
    }
    while (bytes < end) hash = with_byte(hash, *bytes++);
    return finished(hash);
}

#define HASH_TEXTS(type)                                                                           \
    for (Py_ssize_t i = 0; i < size && fits; i++) {                                                \
        const type *bound = (const type *)bounds->items + i;                                       \
        int64_t begin = bound[0], end = bound[1];                                                  \
        fits = begin >= 0 && begin <= end && end <= data->size;                                    \
        if (fits) hash[i] = of_text(bytes + begin, (size_t)(end - begin), hash[i]);                \
    }

/* Return whether the bounds of all texts are in order and within the data; hash them until then. */
static bool hash_texts(const Array *bounds, Py_ssize_t width, const Array *data, Array *hashes) {
    const uint8_t *bytes = data->items;
    uint64_t *hash = hashes->buffer.buf;
    Py_ssize_t size = hashes->size;
    bool fits = bounds->size == size + 1;
    if (width == sizeof(int32_t))
        HASH_TEXTS(int32_t)
    else
        HASH_TEXTS(int64_t)
    return fits;
}

/* Return whether there are as many numbers as hashes. */
static bool hash_numbers(const Array *numbers, Py_ssize_t width, Array *hashes) {
    uint64_t *hash = hashes->buffer.buf;
    if (numbers->size != hashes->size) return false;
    if (width == sizeof(int32_t)) {
        const uint32_t *number = numbers->items;
        for (Py_ssize_t i = 0; i < numbers->size; i++)
            hash[i] = finished(with_int(hash[i] + FIFTH + sizeof(int32_t), number[i]));
    } else {
        const uint64_t *number = numbers->items;
        for (Py_ssize_t i = 0; i < numbers->size; i++)
            hash[i] = finished(with_long(hash[i] + FIFTH + sizeof(int64_t), number[i]));
    }
    return true;
}

PyObject *module_hash_values(PyObject *module, PyObject *args) {
    PyObject *given[3], *result = NULL;
    Array values = {0}, data = {0}, hashes = {0};
    Py_ssize_t width;
    (void)module;
    if (!PyArg_ParseTuple(args, "OnOO", &given[0], &width, &given[1], &given[2])) return NULL;
    if (array_of(given[0], width, &values) == 0 && array_of(given[1], 1, &data) == 0 &&
        writable_of(given[2], 8, &hashes) == 0) {
        bool fits = values.items != NULL && (width == 4 || width == 8);
        lock_leave();
        if (fits)
            fits = data.items == NULL ? hash_numbers(&values, width, &hashes)
                                      : hash_texts(&values, width, &data, &hashes);
        lock_take();
        if (fits)
            result = Py_NewRef(Py_None);
        else
            PyErr_SetString(PyExc_ValueError, "values and hashes do not fit together");
    }
    array_close(&values);
    array_close(&data);
    array_close(&hashes);
    return result;
}
