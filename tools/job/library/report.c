#include "comm/mpi/job_report.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "job/verdicts/findings.h"
#include "job/library/way_out.h"
#include "memory.h"
#include "read/scan.h"

struct pki_mpi_report {
    int32_t ranks;
    job_reading *reading; /* NULL: nothing is, or all has been read */
    job of;
    bool made, found; /* of; what it says */
    job_findings findings;
    size_t parts;
    uint64_t first_start; /* ns since 1970: of the first part */
    complaint why;
    bool failed;
};

typedef struct part {
    int32_t rank;
    const char *text;
    size_t bytes;
} part;

/* One step of the work, where a longjmp does not lose what it has made. */
typedef struct step {
    pki_mpi_report *of;
    part in;
    bool json, done;
    char *text;
    size_t bytes;
    jmp_buf no_memory;
} step;

/* Ranks that nobody had numbered when they started, or that were numbered otherwise, are numbered
 * by MPI. */
static bool read_part(const part *p, int32_t ranks, pki_summary *out)
{
    complaint why = {""};
    scan s = {.at = p->text, .end = p->text + p->bytes, .why = &why};
    pki_summary_init(out);
    if (!scan_object(&s, &pki_rank_shape, out)) {
        pki_summary_finish(out);
        return false;
    }
    out->run.rank = p->rank;
    if (out->run.world_size < ranks)
        out->run.world_size = ranks;
    return true;
}

/* A part of another job is one that had ended before this one began. */
static void read_in_any_locale(step *s)
{
    pki_mpi_report *r = s->of;
    pki_summary rank;
    if (!r->reading)
        r->reading = job_reading_begin(&r->of);
    if (!read_part(&s->in, r->ranks, &rank))
        return;
    if (!r->parts)
        r->first_start = rank.run.start_unix;
    s->done = rank.run.start_unix + rank.run.wall >= r->first_start;
    if (s->done) {
        r->parts++;
        job_reading_add(r->reading, &rank);
    } else {
        pki_summary_finish(&rank);
    }
}

static void find(pki_mpi_report *r)
{
    job_reading *all = r->reading;
    r->reading = NULL;
    r->made = true;
    if (!job_reading_end(all, &(job_steps){.given = false}, &r->why))
        return;
    r->of.file_count = r->parts;
    r->findings = job_find(&r->of);
    r->found = true;
}

static void print_in_any_locale(step *s)
{
    pki_mpi_report *r = s->of;
    if (!r->parts) {
        complaint_set(&r->why, "there is no rank's part that could be read");
        return;
    }
    if (!r->made)
        find(r);
    if (!r->found)
        return;
    FILE *memory = open_memstream(&s->text, &s->bytes);
    memory_needed(memory);
    if (s->json)
        job_print_json(&r->findings, NULL, NULL, memory);
    else
        job_print_text(&r->findings, memory);
    bool done = !ferror(memory);
    memory_needed(fclose(memory) == 0 && done);
}

/* Numbers are read and written with points, whatever the program has set. Without memory what there
 * is of it is lost. */
static void make(step *s, void (*what)(step *s))
{
    pki_mpi_report *r = s->of;
    if (r->failed)
        return;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    if (setjmp(s->no_memory) == 0) {
        memory_way_out(&s->no_memory);
        what(s);
    } else {
        s->text = NULL;
        s->done = false;
        r->failed = true;
        complaint_set(&r->why, "there is no memory for it");
    }
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
}

pki_mpi_report *pki_mpi_report_begin(int32_t ranks)
{
    pki_mpi_report *r = calloc(1, sizeof *r);
    if (r)
        r->ranks = ranks;
    return r;
}

bool pki_mpi_report_read(pki_mpi_report *r, int32_t rank, const char *text, size_t bytes)
{
    step *s = r ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return false;
    *s = (step){.of = r, .in = {rank, text, bytes}};
    make(s, read_in_any_locale);
    bool done = s->done;
    free(s);
    return done;
}

char *pki_mpi_report_text(pki_mpi_report *r, bool json, size_t *bytes, char why[300])
{
    step *s = r ? calloc(1, sizeof *s) : NULL;
    snprintf(why, 300, "there is no memory for it");
    if (!s)
        return NULL;
    *s = (step){.of = r, .json = json};
    make(s, print_in_any_locale);
    snprintf(why, 300, "%s", r->why.text);
    char *text = s->text;
    *bytes = s->bytes;
    free(s);
    return text;
}

/* Nobody has asked what has been read says. */
static void end_reading(step *s)
{
    pki_mpi_report *r = s->of;
    job_reading *all = r->reading;
    r->reading = NULL;
    r->made = true;
    job_reading_end(all, &(job_steps){.given = false}, &r->why);
}

/* What a longjmp has left may be half made: it stays. */
void pki_mpi_report_end(pki_mpi_report *r)
{
    step *s = r && r->reading ? calloc(1, sizeof *s) : NULL;
    if (!r)
        return;
    if (s) {
        s->of = r;
        make(s, end_reading);
        free(s);
    }
    if (!r->failed && r->found)
        job_findings_finish(&r->findings);
    if (!r->failed && r->made)
        job_finish(&r->of);
    free(r);
}
