#include "comm/mpi/job_report.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/findings.h"
#include "job/library/way_out.h"
#include "memory.h"
#include "read/scan.h"

/* What is under way, where a longjmp does not lose it. */
typedef struct work {
    pki_job_piece *pieces;
    size_t count;
    int32_t ranks;
    bool json;
    complaint why;
    char *text;
    size_t bytes;
    jmp_buf no_memory;
} work;

/* Ranks that nobody had numbered when they started, or that were numbered otherwise, are numbered
 * by MPI. */
static bool read_piece(const pki_job_piece *piece, int32_t ranks, pki_summary *out)
{
    complaint why = {""};
    scan s = {.at = piece->text, .end = piece->text + piece->bytes, .why = &why};
    pki_summary_init(out);
    if (!scan_object(&s, &pki_rank_shape, out)) {
        pki_summary_finish(out);
        return false;
    }
    out->run.rank = piece->rank;
    if (out->run.world_size < ranks)
        out->run.world_size = ranks;
    return true;
}

static bool is_of_another_job(const pki_summary *s, const pki_summary *first)
{
    return s->run.start_unix + s->run.wall < first->run.start_unix;
}

static int by_rank(const void *x, const void *y)
{
    const pki_job_piece *const *a = x, *const *b = y;
    return ((*a)->rank > (*b)->rank) - ((*a)->rank < (*b)->rank);
}

/* In the order of ranks, whatever way they have come. */
static pki_summary *read_pieces(const work *w, size_t *count)
{
    pki_job_piece **sorted = memory_zeroed(w->count, sizeof *sorted);
    pki_summary *all = memory_zeroed(w->count, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < w->count; i++) {
        w->pieces[i].taken = false;
        sorted[i] = &w->pieces[i];
    }
    qsort(sorted, w->count, sizeof *sorted, by_rank);
    for (size_t i = 0; i < w->count; i++) {
        if (!read_piece(sorted[i], w->ranks, &all[n]))
            continue;
        sorted[i]->taken = !n || !is_of_another_job(&all[n], &all[0]);
        if (sorted[i]->taken)
            n++;
        else
            pki_summary_finish(&all[n]);
    }
    free(sorted);
    *count = n;
    return all;
}

static void print(work *w, const job *j)
{
    job_findings found = job_find(j);
    FILE *memory = open_memstream(&w->text, &w->bytes);
    memory_needed(memory);
    if (w->json)
        job_print_json(&found, NULL, NULL, memory);
    else
        job_print_text(&found, memory);
    job_findings_finish(&found);
    bool done = !ferror(memory);
    memory_needed(fclose(memory) == 0 && done);
}

static void make_in_any_locale(work *w)
{
    size_t count = 0;
    pki_summary *all = read_pieces(w, &count);
    job j;
    if (!count) {
        complaint_set(&w->why, "there is no rank's part that could be read");
        free(all);
        return;
    }
    if (job_of(&j, all, count, &(job_steps){.given = false}, &w->why)) {
        j.file_count = count;
        print(w, &j);
    }
    job_finish(&j);
    free(all);
}

/* Numbers are read and written with points, whatever the program has set. */
static void make(work *w)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    if (setjmp(w->no_memory) == 0) {
        memory_way_out(&w->no_memory);
        make_in_any_locale(w);
    } else {
        w->text = NULL; /* what there is of it is lost */
        complaint_set(&w->why, "there is no memory for it");
    }
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
}

char *pki_job_report(pki_job_piece *pieces, size_t count, int32_t ranks, bool json, size_t *bytes,
                     char why[300])
{
    work *w = calloc(1, sizeof *w);
    snprintf(why, 300, "there is no memory for it");
    if (!w)
        return NULL;
    *w = (work){.pieces = pieces, .count = count, .ranks = ranks, .json = json};
    make(w);
    snprintf(why, 300, "%s", w->why.text);
    char *text = w->text;
    *bytes = w->bytes;
    free(w);
    return text;
}
