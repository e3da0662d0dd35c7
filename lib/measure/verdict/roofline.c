/* lib/measure/verdict/roofline.c - a region that does nearly what the machine allows: there faster
 * code helps less than less to do. */
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

/* The region with most self time among those near the roof, if it matters. */
static const pki_roofline_row *find(const pki_roofline *r)
{
    const pki_roofline_row *found = NULL;
    for (size_t i = 0; i < r->row_count; i++) {
        const pki_roofline_row *row = &r->rows[i];
        /* Of the roof for double precision more than all is single precision's, or a cache's. */
        double of = row->of_double <= PKI_ROOF_MOST ? row->of_double : row->of_single;
        if (row->share >= PKI_ROOF_REGION && of >= PKI_ROOF_SHARE && of <= PKI_ROOF_MOST &&
            (!found || row->share > found->share))
            found = row;
    }
    return found;
}

bool pki_verdict_at_the_roof(pki_summary *s, pki_sentence *words)
{
    const pki_roofline_row *row = s->roofline.measured ? find(&s->roofline) : NULL;
    if (!row)
        return true;
    bool is_double = row->of_double <= PKI_ROOF_MOST;
    bool memory = is_double ? row->memory_bound_double : row->memory_bound_single;
    double of = is_double ? row->of_double : row->of_single;
    pki_sentence_add(
        words,
        "\"%s\", %s of all self time, reaches %s (threshold 70 %%) of what the machine's "
        "%s allows",
        row->region, PERCENT(row->share), PERCENT(of),
        memory      ? "memory"
        : is_double ? "arithmetic in double precision"
                    : "arithmetic in single precision");
    if (row->intensity > 0)
        pki_sentence_add(words, " at %s operations a byte",
                         pki_figure_scaled(row->intensity, "").text);
    pki_sentence_add(words, memory ? ": moving fewer bytes helps (blocking, fusing loops, smaller "
                                     "types), faster arithmetic does not."
                                   : ": fewer operations help, or a narrower type; faster memory "
                                     "does not.");
    return pki_verdict_add_sentence(words, s, "at-the-roof", PKI_NOTE, of, PKI_ROOF_SHARE);
}
