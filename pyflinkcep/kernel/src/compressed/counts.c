/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of runs, exact to any size. Mirror: Python's integers in engines/compressed/counting.py. */
#include "compressed/counts.h"

#include <string.h>

static const int HALF = 32, TOP = 63;

void counts_free(Counts *counts) {
    release_memory(counts->words);
    *counts = (Counts){0};
}

void counts_clear(Counts *counts) {
    counts->size = 0;
    counts->width = counts->width > 0;
}

/* Make room for other starts and wider numbers; the present ones stay. */
static int counts_cover(Counts *counts, int64_t first, int64_t end, Py_ssize_t width) {
    Py_ssize_t size = (Py_ssize_t)(end - first);
    bool stays = counts->size == 0 || first == counts->first;
    if (counts->words != NULL && stays && size <= counts->room && width <= counts->width) {
        counts->first = first;
        for (Py_ssize_t w = 0; w < counts->width && size > counts->size; w++)
            memset(
                counts->words + w * counts->room + counts->size, 0,
                (size_t)(size - counts->size) * sizeof(uint64_t));
        counts->size = size > counts->size ? size : counts->size;
        return 0;
    }
    Py_ssize_t room = size + size / 4 + 1;
    uint64_t *words = allocate_zeros(room * width, sizeof(uint64_t));
    if (words == NULL) return -1;
    Py_ssize_t from = counts->first < first ? (Py_ssize_t)(first - counts->first) : 0;
    Py_ssize_t to = counts->first > first ? (Py_ssize_t)(counts->first - first) : 0;
    for (Py_ssize_t w = 0; w < counts->width && from < counts->size; w++)
        memcpy(
            words + w * room + to, counts->words + w * counts->room + from,
            (size_t)(counts->size - from) * sizeof(uint64_t));
    release_memory(counts->words);
    *counts = (Counts){first, size, room, width, words};
    return 0;
}

int counts_one(Counts *counts, int64_t start) {
    if (counts_cover(counts, start, start + 1, 1) < 0) return -1;
    counts->words[0] = 1;
    return 0;
}

/* Add numbers of one word; return whether a highest bit is set. */
static bool add_words(uint64_t *to, const uint64_t *from, Py_ssize_t size) {
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        to[i] += from[i];
        seen |= to[i];
    }
    return seen >> TOP;
}

/* Add a number of two words to another. */
static inline void add_pair(uint64_t *low, uint64_t *high, uint64_t more_low, uint64_t more_high) {
#if defined(__SIZEOF_INT128__) /* a compiler that has it adds with a carry */
    __extension__ typedef unsigned __int128 Pair;
    Pair sum = ((Pair)*high << 64 | *low) + ((Pair)more_high << 64 | more_low);
    *low = (uint64_t)sum;
    *high = (uint64_t)(sum >> 64);
#else
    *low += more_low;
    *high += more_high + (*low < more_low);
#endif
}

/* Add numbers of two words, which suffice for windows of a thousand events. */
static bool add_pairs(
    uint64_t *low, uint64_t *high, const uint64_t *more_low, const uint64_t *more_high,
    Py_ssize_t size) {
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        add_pair(&low[i], &high[i], more_low[i], more_high[i]);
        seen |= high[i];
    }
    return seen >> TOP;
}

/* Add numbers of several words. */
static bool add_wide(
    Counts *counts, uint64_t *first, const Counts *other, const uint64_t *from, Py_ssize_t size) {
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        uint64_t carry = 0, *to = first + i;
        for (Py_ssize_t w = 0; w < counts->width; w++, to += counts->room) {
            uint64_t more = w < other->width ? from[w * other->room + i] : 0;
            uint64_t sum = *to + more;
            uint64_t over = sum < more;
            sum += carry;
            carry = over | (sum < carry);
            *to = sum;
        }
        seen |= to[-counts->room];
    }
    return seen >> TOP;
}

/* Where the numbers of two vectors that begin in the window stand. */
typedef struct {
    uint64_t *to;
    const uint64_t *from;
    Py_ssize_t size; /* 0 if there are none */
} Pairs;

/* Make room for the numbers of other runs, without those that began before `since`. */
static inline int counts_meet(
    Counts *counts, const Counts *other, int64_t since, Py_ssize_t width, Pairs *pairs) {
    int64_t begin = other->first > since ? other->first : since, end = counts_end(other);
    *pairs = (Pairs){0};
    if (begin >= end) return 0;
    int64_t first = begin, last = end;
    if (counts->size > 0 && counts_end(counts) > since) {
        first = counts->first < first ? counts->first : first;
        last = counts_end(counts) > last ? counts_end(counts) : last;
        if (last - first > counts->room && first < since) first = since; /* as room must be made */
    }
    if (counts_cover(counts, first, last, width) < 0) return -1;
    *pairs = (Pairs){counts->words + (begin - first), other->words + (begin - other->first),
        (Py_ssize_t)(end - begin)};
    return 0;
}

int counts_add(Counts *counts, const Counts *other, int64_t since) {
    Py_ssize_t width = counts->width > other->width ? counts->width : other->width;
    Pairs p;
    if (counts_meet(counts, other, since, width, &p) < 0) return -1;
    if (p.size == 0) return 0;
    bool full;
    if (width == 1)
        full = add_words(p.to, p.from, p.size);
    else if (width == 2 && other->width == 2)
        full = add_pairs(p.to, p.to + counts->room, p.from, p.from + other->room, p.size);
    else
        full = add_wide(counts, p.to, other, p.from, p.size);
    return full ? counts_cover(counts, counts->first, counts_end(counts), width + 1) : 0;
}

/* Return the lower word of a product plus a carry, and its upper word. */
static inline uint64_t multiply(uint64_t a, uint64_t b, uint64_t carry, uint64_t *upper) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 Pair;
    Pair product = (Pair)a * b + carry;
    *upper = (uint64_t)(product >> 64);
    return (uint64_t)product;
#else
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    uint64_t one = (a >> HALF) * (b & UINT32_MAX) + (low >> HALF);
    uint64_t other = (a & UINT32_MAX) * (b >> HALF) + (one & UINT32_MAX);
    uint64_t product = other << HALF | (low & UINT32_MAX), sum = product + carry;
    *upper = (a >> HALF) * (b >> HALF) + (one >> HALF) + (other >> HALF) + (sum < product);
    return sum;
#endif
}

/* Multiply numbers; one more word has room for them and a free highest bit. */
static int counts_times(Counts *product, const Counts *counts, uint64_t times) {
    if (counts_cover(product, counts->first, counts_end(counts), counts->width + 1) < 0) return -1;
    uint64_t seen = 0;
    for (Py_ssize_t i = 0; i < counts->size; i++) {
        uint64_t carry = 0;
        for (Py_ssize_t w = 0; w < counts->width; w++)
            product->words[w * product->room + i] =
                multiply(counts->words[w * counts->room + i], times, carry, &carry);
        product->words[counts->width * product->room + i] = carry;
        seen |= carry | product->words[(counts->width - 1) * product->room + i] >> TOP;
    }
    if (seen == 0) product->width--; /* the usual case: numbers stay small */
    return 0;
}

int counts_add_times(Counts *counts, const Counts *other, int64_t since, uint64_t times) {
    if (times == 0 || other->size == 0) return 0;
    if (times == 1) return counts_add(counts, other, since);
    Counts product = {0};
    int status = counts_times(&product, other, times);
    if (status == 0) status = counts_add(counts, &product, since);
    counts_free(&product);
    return status;
}

/* --- the greatest, of numbers of one word */

int counts_raise(Counts *counts, const Counts *other, int64_t since) {
    Pairs p;
    if (counts_meet(counts, other, since, 1, &p) < 0) return -1;
    for (Py_ssize_t i = 0; i < p.size; i++)
        if (p.to[i] < p.from[i]) p.to[i] = p.from[i];
    return 0;
}

static bool is_zero(const Counts *counts, const uint64_t *low) {
    for (Py_ssize_t w = 0; w < counts->width; w++)
        if (low[w * counts->room] != 0) return false;
    return true;
}

int counts_raise_where(Counts *counts, const Counts *other, int64_t since, uint64_t least) {
    if (least == 0) return 0;
    Pairs p;
    if (counts_meet(counts, other, since, 1, &p) < 0) return -1;
    for (Py_ssize_t i = 0; i < p.size; i++)
        if (p.to[i] < least && !is_zero(other, p.from + i)) p.to[i] = least;
    return 0;
}

int64_t counts_first(const Counts *counts, int64_t since) {
    int64_t at = counts->first > since ? counts->first : since;
    while (at < counts_end(counts) && is_zero(counts, counts->words + (at - counts->first))) at++;
    return at;
}

uint64_t counts_greatest(const Counts *counts, int64_t since, int64_t until) {
    int64_t begin = counts->first > since ? counts->first : since;
    int64_t end = counts_end(counts) < until ? counts_end(counts) : until;
    uint64_t greatest = 0;
    for (int64_t at = begin; at < end; at++) {
        uint64_t number = counts->words[at - counts->first];
        if (number > greatest) greatest = number;
    }
    return greatest;
}

/* --- totals */

void total_clear(Total *total) { total->size = 0; }

void total_free(Total *total) {
    release_memory(total->words);
    *total = (Total){0};
}

bool total_is_zero(const Total *total) {
    for (Py_ssize_t w = 0; w < total->size; w++)
        if (total->words[w] != 0) return false;
    return true;
}

/* Add a word at an index, and the carry to those above. */
static int total_add_at(Total *total, Py_ssize_t place, uint64_t word) {
    for (; word != 0; place++) {
        if (place >= total->size) {
            uint64_t *words = reserve(total->words, &total->room, place + 1, sizeof(uint64_t));
            if (words == NULL) return -1;
            total->words = words;
            while (total->size <= place) words[total->size++] = 0;
        }
        total->words[place] += word;
        word = total->words[place] < word;
    }
    return 0;
}

int total_add(Total *total, const Total *other) {
    for (Py_ssize_t w = 0; w < other->size; w++)
        if (total_add_at(total, w, other->words[w]) < 0) return -1;
    return 0;
}

int total_raise(Total *total, uint64_t least) {
    if (total->size > 0 && total->words[0] >= least) return 0;
    total_clear(total);
    return total_add_at(total, 0, least);
}

int total_add_times(Total *total, const Total *other, uint64_t times) {
    for (Py_ssize_t w = 0; w < other->size; w++) {
        uint64_t upper, lower = multiply(other->words[w], times, 0, &upper);
        if (total_add_at(total, w, lower) < 0 || total_add_at(total, w + 1, upper) < 0) return -1;
    }
    return 0;
}

int counts_sum(const Counts *counts, int64_t since, int64_t until, Total *total) {
    int64_t begin = counts->first > since ? counts->first : since;
    int64_t end = counts_end(counts) < until ? counts_end(counts) : until;
    if (begin >= end) return 0;
    Py_ssize_t from = (Py_ssize_t)(begin - counts->first), to = (Py_ssize_t)(end - counts->first);
    for (Py_ssize_t w = 0; w < counts->width; w++) {
        const uint64_t *words = counts->words + w * counts->room;
        uint64_t low = 0, high = 0; /* by halves of words, so that neither overflows */
        for (Py_ssize_t i = from; i < to; i++) {
            low += words[i] & UINT32_MAX;
            high += words[i] >> HALF;
        }
        high += low >> HALF;
        if (total_add_at(total, w, (high << HALF) | (low & UINT32_MAX)) < 0 ||
            total_add_at(total, w + 1, high >> HALF) < 0)
            return -1;
    }
    return 0;
}
