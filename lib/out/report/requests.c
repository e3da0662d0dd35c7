/* lib/out/report/requests.c - pk_requests: how many were good, and why the slow ones were slow. */
#include "out/columns.h"
#include "out/report/sections.h"

#include <inttypes.h>

#define SHOWN 5 /* of the slowest */
#define BAR 30  /* columns of a whole */

static void put_counts(const pki_request_summary *r, const pki_summary *s, FILE *file)
{
    double seconds = (double)s->run.wall / 1e9;
    pki_report_print(file, "%s ended: %s finished, %s cancelled, %s failed; %s tokens%s%s",
                     COUNT(r->count), COUNT(r->finished), COUNT(r->cancelled), COUNT(r->failed),
                     COUNT(r->tokens), seconds > 0 ? ", " : "",
                     seconds > 0 ? pki_figure_scaled((double)r->tokens / seconds, "/s").text : "");
    if (r->preemptions)
        pki_report_print(file, "put out of the batch %s times", COUNT(r->preemptions));
    if (r->dropped)
        pki_report_print(file, "%s more ended while their ring was full, and are not in here",
                         COUNT(r->dropped));
}

static void put_goodput(const pki_request_summary *r, FILE *file)
{
    if (!r->ttft_limit && !r->tpot_limit)
        return;
    pki_report_print(file, "goodput: %s of them finished%s%s%s%s%s%s",
                     pki_figure_percent(r->goodput).text,
                     r->ttft_limit ? " with their first token within " : "",
                     r->ttft_limit ? TIME((double)r->ttft_limit) : "",
                     r->ttft_limit && r->tpot_limit ? " and" : "",
                     r->tpot_limit ? (r->ttft_limit ? " " : " with ") : "",
                     r->tpot_limit ? TIME((double)r->tpot_limit) : "",
                     r->tpot_limit ? " or less per token after it" : "");
}

/* ---- what the time went to ---- */

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void put_part(const char *name, uint64_t all, uint64_t all_of, uint64_t slow,
                     uint64_t slow_of, FILE *file)
{
    char bar[BAR + 1];
    double of_slow = share(slow, slow_of);
    size_t n = (size_t)(of_slow * BAR + 0.5);
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < n ? '#' : ' ';
    bar[PKI_MIN(n, (size_t)BAR)] = '\0';
    fprintf(file, "  %-30s", name);
    pki_report_cell(file, pki_figure_percent(share(all, all_of)).text, 7);
    pki_report_cell(file, pki_figure_percent(of_slow).text, 7);
    fprintf(file, "%s%s\n", n ? "  " : "", bar);
}

static void put_parts(const pki_request_summary *r, FILE *file)
{
    const pki_request_parts *a = &r->all, *s = &r->slow;
    if (r->slow_from)
        pki_report_print(file, "what their time went to; slow: the %s that took %s and more",
                         COUNT(s->count), TIME((double)r->slow_from));
    else
        pki_report_print(file, "what their time went to; slow: the %s that missed the limits",
                         COUNT(s->count));
    fputs("                                      all    slow\n", file);
    put_part("queued, not scheduled yet", a->queued, a->total, s->queued, s->total, file);
    put_part("preempted", a->preempted, a->total, s->preempted, s->total, file);
    put_part("reading the own prompt", a->prefill, a->total, s->prefill, s->total, file);
    put_part("  beside others' prompts", a->crowded, a->total, s->crowded, s->total, file);
    put_part("generating", a->decode, a->total, s->decode, s->total, file);
    put_part("  longer for others' prompts", a->behind, a->total, s->behind, s->total, file);
}

/* ---- the slowest ---- */

typedef struct cause {
    const char *text;
    uint64_t ns;
} cause;

/* What most of its time went to. */
static cause largest(const pki_request_parts *p)
{
    const cause causes[] = {{"waiting to be scheduled", p->queued},
                            {"preempted", p->preempted},
                            {"reading its prompt", p->prefill},
                            {"while others' prompts were read", p->crowded + p->behind},
                            {"generating", p->decode}};
    cause most = causes[0];
    for (size_t i = 1; i < PKI_COUNT_OF(causes); i++)
        if (causes[i].ns > most.ns)
            most = causes[i];
    return most;
}

static void put_slowest(const pki_request_summary *r, FILE *file)
{
    if (r->slowest_count)
        fputs("\n  slowest:\n", file);
    for (size_t i = 0; i < r->slowest_count && i < SHOWN; i++) {
        const pki_slow_request *s = &r->slowest[i];
        cause most = largest(&s->parts);
        char steps[64] = "in no step";
        if (s->steps)
            snprintf(steps, sizeof steps, "in steps %" PRIu64 " to %" PRIu64, s->first_step,
                     s->first_step + s->steps - 1);
        pki_report_print(file, "  %s, %s tokens, %s: %s of it %s%s", TIME((double)s->parts.total),
                         COUNT(s->tokens), steps,
                         pki_figure_percent(share(most.ns, s->parts.total)).text, most.text,
                         s->preemptions && most.ns != s->parts.preempted ? "; was preempted" : "");
    }
}

void pki_report_requests(const pki_summary *summary, FILE *file)
{
    const pki_request_summary *r = &summary->requests;
    if (!r->count)
        return;
    pki_report_title(file, "REQUESTS and what they waited for");
    put_counts(r, summary, file);
    put_goodput(r, file);
    put_parts(r, file);
    put_slowest(r, file);
}
