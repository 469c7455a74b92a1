/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of pages. No mirror: without the kernel Arrow reads files. */
#include "tables/pages.h"

#include "tables/thrift.h"

/* Read fields, those of some numbers to `numbers`, which NULL may stand for. */
static void read_numbers(Source *in, int32_t *const *numbers, int64_t count, bool *flag) {
    int64_t id = 0;
    int type;
    while ((type = next_field(in, &id)) != STOP) {
        bool is_known = id > 0 && id <= count && numbers[id - 1] != NULL;
        if (is_known && type == INT_32) {
            int64_t found = whole(in);
            in->failed = in->failed || found < 0 || found > INT32_MAX;
            *numbers[id - 1] = (int32_t)found;
        } else if (flag != NULL && id == 7 && (type == YES || type == NO)) {
            *flag = type == YES;
        } else {
            skip(in, type);
        }
    }
}

const uint8_t *page_header(const uint8_t *at, const uint8_t *end, PageHeader *header) {
    Source in = {at, end, false};
    int64_t id = 0;
    int type;
    *header = (PageHeader){.type = -1, .encoding = -1, .is_compressed = true};
    int32_t *const first[] = {&header->values, &header->encoding, &header->levels_encoding};
    int32_t *const second[] = {&header->values, &header->nulls, NULL, &header->encoding,
        &header->levels, &header->repetitions};
    while ((type = next_field(&in, &id)) != STOP) {
        if (type == STRUCT && (id == 5 || id == 7)) {
            read_numbers(&in, first, 3, NULL);
        } else if (type == STRUCT && id == 8) {
            read_numbers(&in, second, 6, &header->is_compressed);
        } else if (type == INT_32 && id >= 1 && id <= 3) {
            int64_t found = whole(&in);
            if (found < 0 || found > INT32_MAX) return NULL;
            int32_t *numbers[] = {&header->type, &header->size, &header->stored};
            *numbers[id - 1] = (int32_t)found;
        } else {
            skip(&in, type);
        }
    }
    return in.failed || header->stored > in.end - in.at ? NULL : in.at;
}
