/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a column, page by page. No mirror: without the kernel Arrow reads files. */
#include "tables/pages.h"

#include "base/arrays.h"
#include "base/lock.h"
#include "base/objects.h"

#include <string.h>

/* A run of indices: one that is repeated, or some that are packed in bits. */
typedef struct {
    const uint8_t *at, *end; /* what follows the run */
    int bits;
    uint64_t left;
    const uint8_t *packed; /* NULL of one that is repeated */
    uint64_t place; /* of the next one, in bits from there */
    uint32_t index;
} Runs;

typedef struct {
    PyObject_HEAD
    Py_buffer data;
    const uint8_t *at;
    Py_ssize_t width;
    bool is_snappy, has_levels;
    bool has_codes; /* in the dictionary, for the texts that it is to have */
    bool has_dictionary;
    uint8_t *page, *dictionary;
    Py_ssize_t page_room, dictionary_room;
    uint32_t distinct; /* values in the dictionary */
    Py_ssize_t left;   /* values in the page at hand */
    bool is_plain;
    const uint8_t *plain;
    Runs runs;
} Pages;

static const uint8_t *end_of(const Pages *own) {
    return (const uint8_t *)own->data.buf + own->data.len;
}

/* --- runs of indices, and of levels */

static bool next_run(Runs *runs) {
    uint64_t head = 0;
    int shift = 0;
    do {
        if (runs->at == runs->end || shift > 28) return false;
        head |= (uint64_t)(*runs->at & 127) << shift;
        shift += 7;
    } while (*runs->at++ & 128);
    uint64_t bytes = head & 1 ? (head >> 1) * (uint64_t)runs->bits : (uint64_t)(runs->bits + 7) / 8;
    if (bytes > (uint64_t)(runs->end - runs->at)) return false;
    runs->left = head & 1 ? (head >> 1) * 8 : head >> 1;
    runs->packed = head & 1 ? runs->at : NULL;
    runs->place = 0;
    runs->index = 0;
    for (uint64_t i = 0; i < bytes && runs->packed == NULL; i++)
        runs->index |= (uint32_t)runs->at[i] << 8 * i;
    runs->at += bytes;
    return true;
}

/* Return an index of at most 32 bits; there are SLACK bytes behind the last one. */
static uint32_t index_at(const uint8_t *packed, uint64_t place, uint32_t mask) {
    uint64_t found;
    memcpy(&found, packed + (place >> 3), sizeof found);
    return (uint32_t)(found >> (place & 7)) & mask;
}

#define LOOK_UP(type)                                                                              \
    for (Py_ssize_t i = 0; i < count; i++) {                                                       \
        uint32_t index = runs->packed == NULL ? runs->index : index_at(runs->packed, place, mask); \
        place += (uint64_t)runs->bits;                                                             \
        fits &= index < known;                                                                     \
        ((type *)to)[i] = ((const type *)own->dictionary)[index < known ? index : 0];              \
    }

static bool look_up(Pages *own, uint8_t *to, Py_ssize_t wanted) {
    Runs *runs = &own->runs;
    uint32_t mask = (uint32_t)(((uint64_t)1 << runs->bits) - 1), known = own->distinct;
    bool fits = known > 0;
    while (wanted > 0 && fits) {
        if (runs->left == 0) {
            if (!next_run(runs)) return false;
            continue;
        }
        Py_ssize_t count = (uint64_t)wanted < runs->left ? wanted : (Py_ssize_t)runs->left;
        uint64_t place = runs->place;
        if (own->width == 4)
            LOOK_UP(uint32_t)
        else
            LOOK_UP(uint64_t)
        runs->place = place;
        runs->left -= (uint64_t)count;
        to += count * own->width;
        wanted -= count;
    }
    return fits;
}

/* Whether there is a value wherever there could be one. */
static bool are_all_there(const uint8_t *levels, size_t size, Py_ssize_t values) {
    Runs runs = {.at = levels, .end = levels + size, .bits = 1};
    while (values > 0) {
        if (!next_run(&runs)) return false;
        for (uint64_t i = 0; i < runs.left && values > 0; i++, values--) {
            uint32_t level =
                runs.packed == NULL ? runs.index : (uint32_t)runs.packed[i >> 3] >> (i & 7) & 1;
            if (level != 1) return false;
            if (runs.packed == NULL) {
                uint64_t rest = runs.left - i;
                values = (uint64_t)values > rest ? values - (Py_ssize_t)rest : 0;
                break;
            }
        }
    }
    return true;
}

/* --- pages */

/* Put bytes into the page at hand as they are without compression; -1 if they are damaged. */
static int unpack(
    const Pages *own, uint8_t **page, Py_ssize_t *room, const uint8_t *from, size_t stored,
    size_t size, bool is_compressed) {
    bool is_packed = is_compressed && own->is_snappy;
    if (is_packed ? size / MOST_UNPACKED > stored : size != stored) return -1;
    uint8_t *to = reserve(*page, room, (Py_ssize_t)(size + SLACK), 1);
    if (to == NULL) return -1;
    *page = to;
    memset(to + size, 0, SLACK);
    if (is_packed) return unpack_snappy(from, stored, to, size) ? 0 : -1;
    memcpy(to, from, size);
    return 0;
}

static int open_dictionary(Pages *own, const PageHeader *header) {
    bool is_known = header->encoding == PLAIN || header->encoding == PLAIN_DICTIONARY;
    if (!is_known || own->has_dictionary) return -1;
    own->has_dictionary = true;
    if (own->has_codes) return (uint32_t)header->values == own->distinct ? 0 : -1;
    if (header->size / own->width != header->values) return -1;
    own->distinct = (uint32_t)header->values;
    return unpack(
        own, &own->dictionary, &own->dictionary_room, own->at, (size_t)header->stored,
        (size_t)header->size, true);
}

/* Read on after the levels of a page of data. */
static int open_values(Pages *own, const PageHeader *header, const uint8_t *at, size_t size) {
    own->is_plain = header->encoding == PLAIN;
    if (own->has_codes && (own->is_plain || !own->has_dictionary)) return -1;
    own->left = header->values;
    if (own->is_plain) {
        own->plain = at;
        return size / (size_t)own->width == (size_t)header->values ? 0 : -1;
    }
    if (header->encoding != RLE_DICTIONARY && header->encoding != PLAIN_DICTIONARY) return -1;
    if (size == 0) return header->values == 0 ? 0 : -1;
    own->runs = (Runs){.at = at + 1, .end = at + size, .bits = *at};
    return own->runs.bits <= 32 ? 0 : -1;
}

static int open_data(Pages *own, const PageHeader *header) {
    size_t levels = 0, stored = (size_t)header->stored, size = (size_t)header->size;
    bool is_second = header->type == PAGE_OF_DATA_V2;
    if (is_second) {
        levels = (size_t)header->levels;
        if (header->nulls != 0 || header->repetitions != 0 || levels > stored || levels > size)
            return -1;
        if (own->has_levels && !are_all_there(own->at, levels, header->values)) return -1;
    }
    bool is_compressed = !is_second || header->is_compressed;
    if (unpack(
            own, &own->page, &own->page_room, own->at + levels, stored - levels, size - levels,
            is_compressed) < 0)
        return -1;
    size -= levels;
    const uint8_t *at = own->page;
    if (!is_second && own->has_levels) {
        if (header->levels_encoding != RLE || size < 4) return -1;
        levels = at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        at += 4;
        size -= 4;
        if (levels > size || !are_all_there(at, levels, header->values)) return -1;
        at += levels;
        size -= levels;
    }
    return open_values(own, header, at, size);
}

static int next_page(Pages *own) {
    PageHeader header;
    own->at = page_header(own->at, end_of(own), &header);
    if (own->at == NULL) {
        own->at = end_of(own);
        return -1;
    }
    int status = -1;
    if (header.type == PAGE_OF_DICTIONARY)
        status = open_dictionary(own, &header);
    else if (header.type == PAGE_OF_DATA || header.type == PAGE_OF_DATA_V2)
        status = open_data(own, &header);
    own->at += header.stored;
    return status;
}

static Py_ssize_t read_values(Pages *own, uint8_t *to, Py_ssize_t wanted) {
    Py_ssize_t done = 0;
    while (done < wanted) {
        if (own->left == 0) {
            if (own->at == end_of(own)) break;
            if (next_page(own) < 0) return -1;
            continue;
        }
        Py_ssize_t count = wanted - done < own->left ? wanted - done : own->left;
        if (own->is_plain) {
            memcpy(to, own->plain, (size_t)(count * own->width));
            own->plain += count * own->width;
        } else if (!look_up(own, to, count)) {
            return -1;
        }
        to += count * own->width;
        own->left -= count;
        done += count;
    }
    return done;
}

/* read(numbers) -> how many of the next values were written to an array: fewer at the end */
static PyObject *pages_read(Pages *own, PyObject *numbers) {
    Array array = {0};
    if (own->data.obj == NULL) {
        PyErr_SetString(PyExc_ValueError, "there are no pages");
        return NULL;
    }
    if (writable_of(numbers, own->width, &array) < 0) return NULL;
    lock_leave();
    Py_ssize_t count = read_values(own, array.buffer.buf, array.size);
    lock_take();
    array_close(&array);
    if (count >= 0) return PyLong_FromSsize_t(count);
    own->left = 0;
    own->at = end_of(own);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the pages are of another form");
    return NULL;
}

/* Take the codes of texts in place of what the dictionary has. */
static int take_codes(Pages *own, PyObject *codes) {
    Array array = {0};
    if (own->width != 4) {
        PyErr_SetString(PyExc_ValueError, "expected codes of 4 bytes");
        return -1;
    }
    if (array_of(codes, 4, &array) < 0) return -1;
    uint8_t *room = reserve(NULL, &own->dictionary_room, array.size + 1, 4);
    if (room != NULL) {
        memcpy(room, array.buffer.buf, (size_t)array.size * 4);
        own->dictionary = room;
        own->distinct = (uint32_t)array.size;
        own->has_codes = true;
    }
    array_close(&array);
    return room == NULL ? -1 : 0;
}

/*
 * Pages(data, width, is_snappy, has_levels, codes): those of a column in a row group, which are
 * compressed or not, and of which each value could be missing or not. There are codes for the texts
 * of a dictionary, or None.
 */
static int pages_init(Pages *own, PyObject *args, PyObject *keywords) {
    PyObject *data, *codes = Py_None;
    int is_snappy, has_levels;
    (void)keywords;
    if (own->data.obj != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "pages are opened once");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "Onpp|O", &data, &own->width, &is_snappy, &has_levels, &codes))
        return -1;
    if (own->width != 4 && own->width != 8) {
        PyErr_SetString(PyExc_ValueError, "expected numbers of 4 or 8 bytes");
        return -1;
    }
    own->is_snappy = is_snappy;
    own->has_levels = has_levels;
    if (PyObject_GetBuffer(data, &own->data, PyBUF_SIMPLE) < 0) return -1;
    own->at = own->data.buf;
    return codes == Py_None ? 0 : take_codes(own, codes);
}

static void pages_dealloc(Pages *own) {
    PyTypeObject *type = Py_TYPE((PyObject *)own);
    if (own->data.obj != NULL) PyBuffer_Release(&own->data);
    release_memory(own->page);
    release_memory(own->dictionary);
    PyObject_Free(own);
    Py_DECREF((PyObject *)type);
}

/* Return texts, each behind its length, as where each ends and the bytes of all; None if they are none. */
static PyObject *texts_of(const uint8_t *from, size_t size, size_t count) {
    if (size / 4 < count) return Py_NewRef(Py_None);
    PyObject *ends = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count + 1) * 4);
    PyObject *texts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size - 4 * count));
    PyObject *result = NULL;
    if (ends == NULL || texts == NULL) goto end;
    char *to = PyBytes_AsString(texts), *end = PyBytes_AsString(ends);
    size_t room = size - 4 * count;
    uint32_t done = 0;
    memcpy(end, &done, 4);
    for (size_t i = 0; i < count; i++, from += 4) {
        size_t length =
            from[0] | (size_t)from[1] << 8 | (size_t)from[2] << 16 | (size_t)from[3] << 24;
        if (length > room - done) goto none;
        memcpy(to + done, from + 4, length);
        from += length;
        done += (uint32_t)length;
        memcpy(end + 4 * (i + 1), &done, 4);
    }
    if (done == room) result = PyTuple_Pack(2, ends, texts);
none:
    if (result == NULL && !PyErr_Occurred()) result = Py_NewRef(Py_None);
end:
    Py_XDECREF(ends);
    Py_XDECREF(texts);
    return result;
}

PyObject *module_texts(PyObject *module, PyObject *args) {
    Pages own = {0};
    PageHeader header;
    PyObject *data, *result = NULL;
    int is_snappy;
    (void)module;
    if (!PyArg_ParseTuple(args, "Op", &data, &is_snappy)) return NULL;
    if (PyObject_GetBuffer(data, &own.data, PyBUF_SIMPLE) < 0) return NULL;
    own.is_snappy = is_snappy;
    const uint8_t *at = page_header(own.data.buf, end_of(&own), &header);
    bool is_known = header.encoding == PLAIN || header.encoding == PLAIN_DICTIONARY;
    if (at != NULL && header.type == PAGE_OF_DICTIONARY && is_known &&
        unpack(
            &own, &own.page, &own.page_room, at, (size_t)header.stored, (size_t)header.size,
            true) == 0)
        result = texts_of(own.page, (size_t)header.size, (size_t)header.values);
    else if (!PyErr_Occurred())
        result = Py_NewRef(Py_None);
    release_memory(own.page);
    PyBuffer_Release(&own.data);
    return result;
}

static PyMethodDef pages_methods[] = {
    {"read", (PyCFunction)pages_read, METH_O, "write the next values to an array"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pages_slots[] = {
    {Py_tp_doc, "The values of a column of Parquet in a row group."},
    {Py_tp_new, AS_SLOT(PyType_GenericNew)},
    {Py_tp_init, AS_SLOT(pages_init)},
    {Py_tp_dealloc, AS_SLOT(pages_dealloc)},
    {Py_tp_methods, pages_methods},
    {0, NULL},
};

PyType_Spec pages_spec = {
    .name = "pyflinkcep.kernel._kernel.Pages",
    .basicsize = sizeof(Pages),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = pages_slots,
};
