/* tools/bench/compare/json.c - docs/bench-format.md, "A comparison". */
#include "bench/compare/compare.h"

#include "out/json_write.h"

#include <math.h>

static const char *const ways[] = {"one-process", "pairs", "moments"};

/* 0 and infinity bound nothing. */
static void put_bound(pki_json *json, const char *key, double bound)
{
    pki_json_real(json, key, bound > 0 ? bound : NAN);
}

static void put_decision(pki_json *json, const pki_decision *d)
{
    pki_json_real(json, "ratio", d->ratio);
    put_bound(json, "low", d->interval.low);
    put_bound(json, "high", d->interval.high);
    pki_json_real(json, "level", d->level);
    pki_json_real(json, "p", d->p);
    pki_json_text(json, "verdict", pki_change_name(d->change));
    if (d->change == PKI_UNSURE && d->more > 0 && d->more < PKI_TOO_MANY)
        pki_json_uint(json, "more", d->more);
}

static void put_row(pki_json *json, const compare_row *row)
{
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "name", row->name);
    pki_json_real(json, "old", row->old_time);
    pki_json_real(json, "new", row->new_time);
    pki_json_uint(json, "old_launches", row->old_runs);
    pki_json_uint(json, "new_launches", row->new_runs);
    if (row->decided)
        put_decision(json, &row->decision);
    else
        pki_json_text(json, "verdict", "not compared");
    pki_json_text(json, "text", compare_format_verdict(row).text);
    pki_json_close(json, '}');
}

static void put_comparison(pki_json *json, const comparison *c)
{
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "old", c->old_path);
    pki_json_text(json, "new", c->new_path);
    pki_json_text(json, "method", ways[c->way]);
    pki_json_text(json, "summary", compare_format_summary(c).text);
    pki_json_open(json, "warnings", '[');
    for (size_t i = 0; i < c->warning_count; i++)
        pki_json_text(json, NULL, c->warnings[i]);
    pki_json_close(json, ']');
    pki_json_open(json, "benchmarks", '[');
    for (size_t i = 0; i < c->count; i++)
        put_row(json, &c->rows[i]);
    pki_json_close(json, ']');
    pki_json_close(json, '}');
}

void compare_json(const comparison *steps, size_t count, FILE *file)
{
    pki_json json = {.file = file, .rows = true};
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "format", "perfkit comparison");
    pki_json_uint(&json, "schema", 1);
    pki_json_real(&json, "threshold", steps->options.threshold);
    pki_json_real(&json, "alpha", steps->options.alpha);
    pki_json_real(&json, "moments", steps->options.moments);
    pki_json_open(&json, "comparisons", '[');
    for (size_t i = 0; i < count; i++)
        put_comparison(&json, &steps[i]);
    pki_json_close(&json, ']');
    pki_json_close(&json, '}');
    fputc('\n', file);
}
