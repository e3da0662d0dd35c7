/* tools/live/where.c - pk where: where each thread stands, and who waits for whom. */
#include "live/where.h"

#include <stdlib.h>

#include "command.h"
#include "command_line.h"

typedef struct wish {
    bool json;
    operands targets;
} wish;

static const option all_options[] = {
    {"--json", NULL, "all of it as one JSON document", .at = offsetof(wish, json)},
};

static const option_table command_options = {
    .command = "where",
    .usage = "TARGET... [--json]",
    .about =
        "What processes are in: the open regions of each thread and since when, the current step,\n"
        "the last operations of each communicator; and, for several ranks, which one the others\n"
        "wait for and how that is known. TARGET is\n"
        "  a pid         of a process that has called pk_start\n"
        "  an arena      the file that a run keeps beside its trace, also of one that was killed\n"
        "  a folder      all arenas in it: the ranks of a job\n"
        "The processes are neither stopped nor touched, and need not cooperate.",
    .notes = "Exit status: 0; 2 if a TARGET cannot be read.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "arena",
    .who = "where: ",
    .operands = offsetof(wish, targets),
};

/* Those that can still be read: one may have ended since. */
static size_t take_snapshots(where *w, targets *t)
{
    for (size_t i = 0; i < t->count; i++) {
        view *l = &w->views[w->count];
        l->t = &t->all[i];
        if (snapshot_take(&l->s, l->t)) {
            snapshot_read_kernel(&l->s, l->t);
            w->count++;
        } else {
            snapshot_finish(&l->s);
        }
    }
    return w->count;
}

static int show(targets *t, bool json)
{
    where w = {.views = calloc(t->count + 1, sizeof *w.views)};
    int status = EXIT_OK;
    if (!w.views || !take_snapshots(&w, t) || !behind_find(&w.behind, w.views, w.count))
        status = complain("where: %s", w.views ? "the arena can no longer be read" : "no memory");
    else if (json)
        where_json(&w, stdout);
    else
        where_text(&w, stdout);
    behind_finish(&w.behind);
    for (size_t i = 0; i < w.count; i++)
        snapshot_finish(&w.views[i].s);
    free(w.views);
    return status;
}

int command_where(int argc, char **argv)
{
    wish w = {0};
    targets t;
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.targets.count)
        return complain("where needs a TARGET (pk where --help)");
    bool open = targets_open(&t, w.targets.all, w.targets.count, &why);
    status = open ? show(&t, w.json) : complain("where: %s", why.text);
    for (size_t i = 0; i < t.skipped_count && open; i++)
        fprintf(stderr, "pk: where: left out: %s\n", t.skipped[i].text);
    targets_close(&t);
    return status;
}
