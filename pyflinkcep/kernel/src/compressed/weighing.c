/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs carry: their number and weight, by the event that they began with. Mirror:
 * engines/compressed/counting.py; engines/compressed/counting.py turns values into weights.
 */
#include "compressed/merged.h"

uint64_t weight_of(const Weighing *weighing, int32_t what, int64_t handle) {
    return weighing->weights != NULL && what == weighing->what ? weighing->weights[handle] : 0;
}

int run_add(const Weighing *weighing, Run *run, const Run *other, int64_t since, uint64_t weight) {
    if (counts_add(&run->counts, &other->counts, since) < 0) return -1;
    if (weighing->weights == NULL) return 0;
    if (weighing->seeks_greatest) {
        if (counts_raise(&run->weights, &other->weights, since) < 0) return -1;
        return counts_raise_where(&run->weights, &other->counts, since, weight);
    }
    if (counts_add(&run->weights, &other->weights, since) < 0) return -1;
    return counts_add_times(&run->weights, &other->counts, since, weight);
}

/* Add the weights of matches, `count` of which have taken an event at their end. */
static int end_weight(
    const Weighing *weighing, const Run *run, int64_t since, int64_t until, const Total *count,
    uint64_t weight, Total *total) {
    if (!weighing->seeks_greatest) {
        if (total_add_times(total, count, weight) < 0) return -1;
        return counts_sum(&run->weights, since, until, total);
    }
    uint64_t greatest = counts_greatest(&run->weights, since, until);
    if (weight > greatest && !total_is_zero(count)) greatest = weight;
    return total_raise(total, greatest);
}

int run_end(
    const Weighing *weighing, const Run *run, int64_t since, int64_t until, uint64_t weight,
    Ended *ended) {
    if (weighing->weights == NULL) return counts_sum(&run->counts, since, until, &ended->count);
    Total count = {0};
    int status = counts_sum(&run->counts, since, until, &count);
    if (status == 0) status = total_add(&ended->count, &count);
    if (status == 0)
        status = end_weight(weighing, run, since, until, &count, weight, &ended->weight);
    total_free(&count);
    return status;
}

void ended_clear(Ended *ended) {
    total_clear(&ended->count);
    total_clear(&ended->weight);
}

void ended_free(Ended *ended) {
    total_free(&ended->count);
    total_free(&ended->weight);
}
