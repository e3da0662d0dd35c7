#include "out/window/write.h"

#include <stdlib.h>

#include "measure/thinning.h"
#include "out/json_write.h"
#include "stats/slot.h"

bool pki_window_line_begin(pki_window_line *l, pki_window *window)
{
    l->window = window;
    l->text = NULL;
    l->failed = false;
    l->member = l->row = 0;
    pki_stats_begin(&l->stats);
    l->memory = open_memstream(&l->text, &l->bytes);
    l->json = (pki_json){.file = l->memory};
    return l->memory;
}

static bool put_region(pki_window_line *l)
{
    pki_window *w = l->window;
    if (l->row == w->region_count)
        return false;
    pki_window_region *row = &w->regions[l->row++];
    row->time = pki_window_sum_dist(&row->exact, &l->stats);
    row->thinned = pki_region_thinned_of(&l->stats, 0, w->run.clock_step_ns, w->overhead.region_ns);
    pki_json_object(&l->json, NULL, &pki_window_region_shape, row);
    return true;
}

static bool put_counter(pki_window_line *l)
{
    pki_window *w = l->window;
    if (l->row == w->counter_count)
        return false;
    pki_window_counter *row = &w->counters[l->row++];
    row->value = pki_tally_dist(&row->exact);
    pki_json_object(&l->json, NULL, &pki_window_counter_shape, row);
    return true;
}

/* A row of the table, or its end: then it is the next member's turn. */
static void put_row(pki_window_line *l, const pki_member *m, bool (*put)(pki_window_line *))
{
    if (l->row == 0)
        pki_json_open(&l->json, m->key, '[');
    if (put(l))
        return;
    pki_json_close(&l->json, ']');
    l->row = 0;
    l->member++;
}

static void put_piece(pki_window_line *l)
{
    const pki_member *m = &pki_window_shape.members[l->member];
    if (l->member == 0) {
        pki_json_open(&l->json, NULL, '{');
        pki_json_text(&l->json, "format", PKI_WINDOW_FORMAT);
        pki_json_uint(&l->json, "schema", PKI_WINDOW_SCHEMA);
    }
    if (m->shape == &pki_window_region_shape) {
        put_row(l, m, put_region);
    } else if (m->shape == &pki_window_counter_shape) {
        put_row(l, m, put_counter);
    } else {
        pki_json_member(&l->json, m, l->window);
        l->member++;
    }
}

bool pki_window_line_advance(pki_window_line *l)
{
    pki_plain plain;
    bool more = l->member < pki_window_shape.count;
    if (!more || l->failed)
        return true;
    if (pki_plain_enter(&plain)) {
        put_piece(l);
        pki_plain_leave(&plain);
    } else {
        l->failed = true;
    }
    return false;
}

bool pki_window_line_end(pki_window_line *l)
{
    pki_json_close(&l->json, '}');
    bool fits = fputs("\n", l->memory) >= 0 && !ferror(l->memory);
    fits = fclose(l->memory) == 0 && fits && l->text && !l->failed;
    l->memory = NULL;
    return fits;
}

void pki_window_line_finish(pki_window_line *l)
{
    if (l->memory)
        fclose(l->memory);
    free(l->text);
    l->memory = NULL;
    l->text = NULL;
}
