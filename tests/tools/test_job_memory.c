/* All ranks of a job as one, without memory: one allocation failing, or all from one on, for each
 * way to one. The answer is whole or there is none, and nothing is left behind (which a sanitizer
 * or valgrind sees). */
#include "failing_memory.h"
#include "job_forge.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pk/comm.h>

#include "job/forms/forms.h"
#include "job/window.h"

#define RANKS 20
#define LATE 8 /* of them: more than are said one by one */
#define MS UINT64_C(1000000)

/* ---- ranks that have all that a report may tell ---- */

/* Two hosts, whose clocks are bounded by what is done together; some ranks are late. */
static const forge busy = {.seed = 5,
                           .ranks = RANKS,
                           .steps = 30,
                           .per_host = RANKS / 2,
                           .culprits = LATE,
                           .slow = 0.5,
                           .stage = FORGE_LOAD,
                           .regions = 6,
                           .calls = 20};

static void saw(pki_summary *s, uint32_t op, uint64_t key, size_t partner, uint64_t start,
                uint64_t takes)
{
    pki_sequences *q = &s->comm.sequences;
    q->rows[q->row_count++] = (pki_sequence_row){.key = key,
                                                 .start = start,
                                                 .duration = takes,
                                                 .waited = takes,
                                                 .bytes = 100,
                                                 .op = op,
                                                 .ranks = RANKS,
                                                 .partner = (int32_t)partner};
}

/* A ring of messages, of which those from rank 3 are slow, and a barrier behind each of them. */
static void add_sequences(pki_summary *s, size_t rank)
{
    pki_sequences *q = &s->comm.sequences;
    size_t next = (rank + 1) % RANKS, before = (rank + RANKS - 1) % RANKS;
    q->one_in = 1;
    q->clock = strdup(s->run.host);
    q->rows = calloc(90, sizeof *q->rows);
    for (uint64_t i = 0; i < 30; i++) {
        uint64_t at = (1 + i) * MS, usual = MS / 10 + (i * 7 + rank) % 5 * MS / 1000;
        saw(s, PK_COMM_OP_SEND, 1 + 100 * rank + i, next, at, MS / 10);
        saw(s, PK_COMM_OP_RECV, 1 + 100 * before + i, before, at, before == 3 ? 5 * usual : usual);
        saw(s, PK_COMM_OP_BARRIER, 5000 + i, (size_t)-1, at + MS / 2, MS / 10);
    }
    q->operations = q->row_count;
}

static void add_comm(pki_summary *s, size_t rank)
{
    pki_comm_summary *c = &s->comm;
    const pki_dist time = {.count = 9, .sum = 9 * MS, .mean = MS, .min = MS / 2, .max = 2 * MS};
    c->comm_count = c->collective_count = c->region_count = c->slowest_count = 1;
    c->comms = calloc(1, sizeof *c->comms);
    c->comms[0] = (pki_comm_row){.library = strdup("MPI"),
                                 .name = strdup("world"),
                                 .id = 7,
                                 .rank = (int32_t)rank,
                                 .size = RANKS,
                                 .calls = 9};
    c->collectives = calloc(1, sizeof *c->collectives);
    c->collectives[0] =
        (pki_operation_row){.op = PK_COMM_OP_ALL_REDUCE, .size = 1024, .time = time};
    c->regions = calloc(1, sizeof *c->regions);
    c->regions[0] = (pki_comm_region_row){
        .region = strdup("reduce"), .op = PK_COMM_OP_ALL_REDUCE, .time = time};
    c->slowest = calloc(1, sizeof *c->slowest);
    c->slowest[0] = (pki_comm_call_row){.region = strdup("reduce"),
                                        .op = PK_COMM_OP_ALL_REDUCE,
                                        .sequence = 4,
                                        .duration = (1 + rank) * MS};
    c->partner_count = 2;
    c->partners = calloc(2, sizeof *c->partners);
    c->partners[0] =
        (pki_partner_row){.rank = (int32_t)(rank + 1) % RANKS, .sent = 30, .sent_bytes = 3000};
    c->partners[1] = (pki_partner_row){.rank = PKI_PARTNERS_OTHER, .sent = 3, .sent_bytes = 30};
    add_sequences(s, rank);
}

static void add_costs(pki_summary *s)
{
    s->memory.looks = 1;
    s->memory.most_resident = 1000;
    s->energy = (pki_energy_summary){.asked = 1,
                                     .why_not = strdup(""),
                                     .row_count = 1,
                                     .rows = calloc(1, sizeof *s->energy.rows),
                                     .held_by = strdup("")};
    s->energy.rows[0] = (pki_energy_row){
        .counter = strdup("package-0"), .step_kind = strdup(PKI_ENERGY_RUN), .joules = 5};
    s->events = (pki_events_summary){.asked = 1,
                                     .why_not_hardware = strdup(""),
                                     .why_not_software = strdup(""),
                                     .why_threads = strdup(""),
                                     .row_count = 1,
                                     .rows = calloc(1, sizeof *s->events.rows)};
    pki_events_row *row = s->events.rows;
    row->region = strdup("work");
    row->calls = row->sampled = 10;
    row->value[PKI_EVENT_INSTRUCTIONS] = 3000;
    row->value[PKI_EVENT_CYCLES] = 1000;
    s->gpu_count = 1;
    s->gpus = calloc(1, sizeof *s->gpus);
    s->gpus[0].per_step[PKI_GPU_STEP] = (pki_dist){.count = 9, .sum = 9e6, .mean = 1e6};
    s->gpus[0].per_step[PKI_GPU_BUSY] = (pki_dist){.count = 9, .sum = 5e6, .mean = 5e5};
}

static void make(const forge *f, pki_summary *ranks)
{
    bool culprit[RANKS];
    forge_make(f, ranks, culprit);
    for (size_t r = 0; r < f->ranks; r++) {
        ranks[r].run.wall = 100 * MS;
        ranks[r].run.start_unix = 1000;
        ranks[r].run.complete = r != 2;
        add_costs(&ranks[r]);
        if (f->ranks != RANKS)
            continue;
        free(ranks[r].regions[0].name);
        ranks[r].regions[0].name = strdup("MPI_Send");
        add_comm(&ranks[r], r);
    }
}

/* ---- each way to an allocation ---- */

typedef void failing(long n);
typedef bool
part(const void *of); /* makes what it needs, then asks for the way; true: it is whole */

static failing *way;
static long way_at;

/* From here on allocations fail. */
static void fail_from_here(void)
{
    way(way_at);
}

/* Is it whole just where there was memory for all of it? */
static bool run(part *does, const void *of, failing *by, long n)
{
    way = by;
    way_at = n;
    bool whole = does(of), failed = memory_has_failed();
    memory_fails_after(-1);
    assert_true(whole != failed);
    return failed;
}

static void sweep_by(failing *by, part *does, const void *of)
{
    size_t count;
    long total;
    assert_false(run(does, of, memory_watch, 0));
    const long *chosen = memory_watched(&count, &total);
    assert_in_range(total, 50, 100000);
    for (size_t i = 0; i < count; i++)
        assert_true(run(does, of, by, chosen[i]));
    assert_false(run(does, of, by, total));
}

static void sweep(part *does, const void *of)
{
    sweep_by(memory_fails_after, does, of);
    sweep_by(memory_fails_once, does, of);
}

/* ---- files of ranks become a job ---- */

static char life_path[] = "/tmp/pk-job-memory-XXXXXX";

/* What the file is read for once more. */
static pki_summary kept[RANKS];
static bool is_kept;

static void again(const char *path, pki_job_take *take, void *user)
{
    assert_true(is_kept && strcmp(path, "file") == 0);
    is_kept = false;
    for (size_t r = 0; r < RANKS; r++)
        take(user, r, &kept[r]);
}

static void finish(pki_summary *ranks)
{
    for (size_t r = 0; r < RANKS; r++)
        pki_summary_finish(&ranks[r]);
}

static bool add_all(pki_job_reading *all, pki_summary *ranks)
{
    bool done = all != NULL;
    for (size_t i = 0; i < RANKS + 2; i++)
        if (done)
            done = pki_job_reading_add(all, "file", i < RANKS ? i : RANKS, &ranks[i]);
        else
            pki_summary_finish(&ranks[i]);
    return done && pki_job_note(all, "a file", "cannot be read");
}

/* Rank 5 is there twice, the later run's second, and one more has no number: what has been added up
 * is begun anew. */
static void make_file(pki_summary ranks[RANKS + 2])
{
    pki_summary more[RANKS], none;
    pki_summary_init(&none);
    make(&busy, ranks);
    make(&busy, kept);
    is_kept = true;
    make(&busy, more);
    ranks[RANKS] = more[5];
    ranks[RANKS].run.start_unix = 2000;
    ranks[RANKS + 1] = more[6];
    ranks[RANKS + 1].run.world_size = 0;
    more[5] = more[6] = none;
    finish(more);
}

static bool read_all(const void *of)
{
    pki_summary ranks[RANKS + 2];
    pki_job j;
    bool is_life = false;
    make_file(ranks);
    fail_from_here();
    pki_job_reading *all = pki_job_reading_begin(&j, again);
    bool done = add_all(all, ranks);
    done = pki_job_life_add(&j, of, &is_life) && is_life && done;
    done = pki_job_reading_end(all, &(pki_job_steps){0}) == PKI_JOB_MADE && done;
    if (done && !memory_has_failed())
        assert_true(j.rank_count == RANKS && j.life_count == 1 && j.notes.count == 3 && !is_kept);
    pki_job_finish(&j);
    if (is_kept)
        finish(kept);
    return done;
}

static void files_become_a_job(void **state)
{
    (void)state;
    static const pki_life_line line = {.run = 1, .unix_ns = 5, .at = -1, .furthest = -1};
    char text[PKI_LIFE_LINE];
    size_t length = pki_life_put(&line, text);
    int file = mkstemp(life_path);
    assert_int_equal(write(file, text, length), length);
    close(file);
    sweep(read_all, life_path);
    unlink(life_path);
}

/* ---- what is found in it, and said ---- */

static FILE *nowhere;
static pki_job of_all, of_few; /* made with memory */

static bool find_all(const void *of)
{
    pki_job_findings f;
    pki_job_verdicts v;
    fail_from_here();
    bool found = pki_job_find(&f, of);
    if (found && !memory_has_failed() && of == &of_all) {
        assert_null(f.waits.why_not);
        assert_true(f.waits.links[0].slow);
        assert_true(f.lateness.count > PKI_JOB_LATE_SAID);
        assert_int_equal(f.exchange.mpi_ranks, RANKS);
        assert_true(f.links.arrival_count > 0);
    }
    bool said = found && pki_job_group_verdicts(&v, &f);
    if (found)
        pki_job_verdicts_finish(&v);
    pki_job_findings_finish(&f);
    return said;
}

static bool print_all(const void *of)
{
    const pki_job_findings *f = of;
    pki_job_page page;
    fail_from_here();
    bool done = pki_job_print_json(f, NULL, NULL, nowhere);
    done = pki_job_print_text(f, nowhere) && done;
    done = pki_job_page_of(&page, f, "/tmp/page.html") && done;
    if (done) {
        int job = pki_job_page_job(&page, nowhere), drawn = pki_job_page_drawn(&page, nowhere);
        assert_true((job == 0 || job == -ENOMEM) && (drawn == 0 || drawn == -ENOMEM));
        done = !job && !drawn;
    }
    pki_job_page_finish(&page);
    return done;
}

static bool against(const void *of)
{
    pki_against a;
    fail_from_here();
    bool done = pki_job_against(&a, &of_all, of, 1, 0.01);
    pki_against_finish(&a);
    return done;
}

static void make_job(const forge *f, pki_job *j)
{
    pki_summary ranks[RANKS];
    make(f, ranks);
    assert_int_equal(pki_job_of(j, ranks, f->ranks, &(pki_job_steps){0}), PKI_JOB_MADE);
}

static int make_jobs(void **state)
{
    const forge crowded = {.seed = 3,
                           .ranks = 8,
                           .steps = 40,
                           .crowd = FORGE_CROWD_OF_RUN,
                           .uneven = 0.27,
                           .seated = true,
                           .told = true,
                           .culprits = 1,
                           .slow = 6,
                           .regions = 1};
    (void)state;
    make_job(&busy, &of_all);
    make_job(&crowded, &of_few);
    nowhere = fopen("/dev/null", "w");
    return nowhere ? 0 : -1;
}

static int forget_jobs(void **state)
{
    (void)state;
    pki_job_finish(&of_all);
    pki_job_finish(&of_few);
    return fclose(nowhere);
}

static void what_is_in_it_is_found(void **state)
{
    (void)state;
    sweep(find_all, &of_all);
    sweep(find_all, &of_few);
}

static void what_is_found_is_printed(void **state)
{
    (void)state;
    pki_job_findings f;
    assert_true(pki_job_find(&f, &of_all));
    sweep(print_all, &f);
    pki_job_findings_finish(&f);
}

static void a_job_beside_another(void **state)
{
    (void)state;
    sweep(against, &of_all);
}

/* ---- the last steps, while it runs: without memory nobody is judged any more ---- */

static void tell(pki_job_window *w, const pki_summary *ranks, size_t step)
{
    pk_job_steps_ given[RANKS];
    for (size_t r = 0; r < RANKS; r++) {
        const pki_stage_summary *s = &ranks[r].stages;
        const uint64_t *row = s->loops[0].numbers + step * s->width;
        given[r] = (pk_job_steps_){.first = step, .steps = 1, .time = row[PKI_BLOCK_TIME]};
        for (size_t i = 0; i < s->stage_count; i++) {
            given[r].stages[i] = (pk_job_stage_){.self = row[PKI_BLOCK_HEAD + i],
                                                 .kind = (uint8_t)s->stages[i].kind};
            snprintf(given[r].stages[i].name, sizeof given[r].stages[i].name, "%s",
                     s->stages[i].name);
        }
    }
    pki_job_window_add(w, given);
}

/* Of the steps so far, twice: who is late has to be so again. */
static bool judge_window(const void *of)
{
    char hosts[RANKS * PKI_WINDOW_HOST] = "";
    pk_job_word_ word = {.count = 0};
    fail_from_here();
    pki_job_window *w = pki_job_window_create(RANKS, hosts);
    if (!w)
        return false;
    for (size_t step = 0; step < 28; step++)
        tell(w, of, step);
    bool judged = pki_job_window_judge(w, &word) && pki_job_window_judge(w, &word);
    if (judged)
        assert_true(word.count == LATE && word.last == 27);
    else
        assert_false(word.count || pki_job_window_judge(w, &word));
    pki_job_window_destroy(w);
    return judged;
}

static void a_window_is_judged(void **state)
{
    (void)state;
    pki_summary ranks[RANKS];
    make(&busy, ranks);
    sweep(judge_window, ranks);
    finish(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_become_a_job),       cmocka_unit_test(what_is_in_it_is_found),
        cmocka_unit_test(what_is_found_is_printed), cmocka_unit_test(a_job_beside_another),
        cmocka_unit_test(a_window_is_judged),
    };
    return cmocka_run_group_tests(tests, make_jobs, forget_jobs);
}
