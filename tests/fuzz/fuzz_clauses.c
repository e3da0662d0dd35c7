/* Any text as pk_options.capture: it is taken or refused with a reason; what is taken is within
 * bounds, and steps that go by it give ranges that make sense. */
#include "capture/capture.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static void check(const pki_clauses *c)
{
    must(c->slow == 0 || (c->slow > 1 && c->slow <= 1000));
    must(c->range_count <= PKI_CAPTURE_RANGES);
    for (uint32_t i = 0; i < c->range_count; i++)
        must(c->ranges[i].first <= c->ranges[i].last);
    must(c->cycle.active <= PKI_CAPTURE_STEPS_MOST);
    uint64_t longest = pki_clauses_longest(c);
    must(longest >= 1 && longest <= PKI_CAPTURE_STEPS_MOST);
}

static void go(const pki_clauses *c, const uint8_t *data, size_t size)
{
    pki_chooser chooser = {.clauses = *c};
    pki_wish wishes[PKI_WISHES_MOST];
    uint64_t number = 0;
    for (size_t i = 0; i < size && i < 300; i++) {
        unsigned n = pki_choose(&chooser, number, data[i] % 3u, (uint64_t)data[i] * 100000, wishes);
        must(n <= PKI_WISHES_MOST);
        for (unsigned k = 0; k < n; k++)
            must(wishes[k].first <= wishes[k].last && wishes[k].last <= number && !wishes[k].cut);
        number += data[i] > 250 ? 2 : 1;
    }
    unsigned n = pki_choose_at_end(&chooser, wishes);
    must(n <= PKI_WISHES_MOST);
    for (unsigned k = 0; k < n; k++)
        must(wishes[k].first <= wishes[k].last && wishes[k].last < chooser.next && wishes[k].cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512], why[160] = "";
    pki_clauses clauses;
    size_t n = size < sizeof text ? size : sizeof text - 1;
    if (n)
        memcpy(text, data, n);
    text[n] = 0;
    if (!pki_clauses_parse(text, &clauses, why, sizeof why)) {
        must(why[0] != 0);
        return 0;
    }
    check(&clauses);
    go(&clauses, data, size);
    return 0;
}
