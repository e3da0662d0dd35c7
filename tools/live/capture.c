/* tools/live/capture.c - pk capture: the same steps of several processes, each as a trace. */
#include "live/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "command.h"
#include "command_line.h"

#define EXIT_NOT_ALL 1

typedef struct wish {
    uint32_t steps, at, ahead, wait;
    bool given_at, given_ahead, json;
    operands targets;
} wish;

static bool parse_at(void *to, const option_given *given)
{
    ((wish *)to)->given_at = true;
    return option_number(to, given);
}

static bool parse_in(void *to, const option_given *given)
{
    ((wish *)to)->given_ahead = true;
    return option_number(to, given);
}

static const option all_options[] = {
    {"--steps", "N", "so many steps (1)", OPTION_WORD, option_number, offsetof(wish, steps),
     .least = 1, .most = 10000},
    {"--at", "STEP", "from this step on, as it is numbered in traces", OPTION_WORD, parse_at,
     offsetof(wish, at), .least = 0},
    {"--in", "N",
     "so many steps ahead of the one that has come furthest. Without --at and --in: as many as "
     "take a second",
     OPTION_WORD, parse_in, offsetof(wish, ahead), .least = 0},
    {"--wait", "SECONDS", "for so long at most (60)", OPTION_WORD, option_number,
     offsetof(wish, wait), .least = 1, .most = 86400},
    {"--json", NULL, "the answers as one JSON document", .at = offsetof(wish, json)},
};

static const option_table command_options = {
    .command = "capture",
    .usage = "TARGET... [--steps N] [--at STEP | --in N] [--wait SECONDS] [--json]",
    .about =
        "Asks running processes for a trace of the same steps, and says who has made one, who was\n"
        "late (the step had passed: nothing is shifted), who is stopped or gone. TARGET is\n"
        "  a pid         of a process that has called pk_start\n"
        "  an arena      the file that a run keeps beside its trace\n"
        "  a folder      all arenas in it: the ranks of a job\n"
        "They have to be started with PK_CAPTURE=request, perhaps among other clauses.",
    .notes = "Exit status: 0; 1 if not all have captured; 2 if none could be asked.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "arena",
    .who = "capture: ",
    .operands = offsetof(wish, targets),
};

static void print_text(const capture_job *job)
{
    char who[TARGET_TEXT];
    for (size_t i = 0; i < job->count; i++) {
        const capture_part *p = &job->parts[i];
        target_describe(p->t, who);
        printf("%s: %s, %s\n", who, p->verdict, p->why);
    }
}

static void print_json(const capture_job *job)
{
    char text[6 * CAPTURE_WHY + 1];
    printf("{\"first\":%llu,\"steps\":%u,\"targets\":[", (unsigned long long)job->first,
           job->wish.steps);
    for (size_t i = 0; i < job->count; i++) {
        const capture_part *p = &job->parts[i];
        const pki_arena_header *h = p->t->header;
        pki_json_escape(text, sizeof text, p->why, strlen(p->why));
        printf("%s\n{\"rank\":%d,\"pid\":%u,\"answer\":\"%s\",\"%s\":\"%s\"}", i ? "," : "",
               h->world_size > 0 ? h->rank : -1, h->pid, p->verdict, p->good ? "path" : "why",
               text);
    }
    printf("\n]}\n");
}

static int all_good(const capture_job *job)
{
    size_t good = 0;
    for (size_t i = 0; i < job->count; i++)
        good += job->parts[i].good;
    return good == job->count ? EXIT_OK : EXIT_NOT_ALL;
}

static int run(targets *t, const wish *w)
{
    complaint why = {""};
    capture_job job = {.wish = {.steps = w->steps,
                                .given_at = w->given_at,
                                .given_ahead = w->given_ahead,
                                .at = w->at,
                                .ahead = w->ahead,
                                .wait_seconds = w->wait},
                       .parts = calloc(t->count + 1, sizeof *job.parts),
                       .count = t->count};
    if (!job.parts)
        return complain("capture: no memory");
    for (size_t i = 0; i < t->count; i++)
        job.parts[i].t = &t->all[i];
    int status = EXIT_OK;
    if (capture_request(&job, &why)) {
        capture_wait(&job);
        (w->json ? print_json : print_text)(&job);
        status = all_good(&job);
    } else {
        status = complain("capture: %s", why.text);
    }
    free(job.parts);
    return status;
}

int command_capture(int argc, char **argv)
{
    wish w = {.steps = 1, .wait = 60};
    targets t;
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.targets.count)
        return complain("capture needs a TARGET (pk capture --help)");
    if (w.given_at && w.given_ahead)
        return complain("capture: --at and --in exclude each other");
    bool open = targets_open(&t, w.targets.all, w.targets.count, &why);
    status = open ? run(&t, &w) : complain("capture: %s", why.text);
    targets_close(&t);
    return status;
}
