/* tools/merge/command.c - pk merge: traces of ranks as one trace, on one time axis. */
#include "merge/inputs.h"

#include "base/compiler.h"
#include "command.h"
#include "merge/arrows.h"
#include "merge/head.h"
#include "merge/manifest.h"
#include "merge/print.h"
#include "files.h"

#include <stdio.h>
#include <stdlib.h>

static const option all_options[] = {
    {"-o", "OUT", "the merged trace (.gz: compressed)", OPTION_FILE, option_text,
     offsetof(merge_wish, out), .needs = "the name of a file (pk merge --help)"},
    {"--ranks", "LIST", "these ranks alone: 0,4,8-15", OPTION_WORD, parse_ranks, .needs = NULL},
    {"--steps", "A-B", "from the first rank's beginning of step A to the last one's end of step B",
     OPTION_WORD, parse_steps, .needs = NULL},
    {"--from", "T", "what goes on this many seconds after the beginning, and later", OPTION_WORD,
     parse_from, .needs = NULL},
    {"--to", "T", "...and up to this many", OPTION_WORD, parse_to, .needs = NULL},
    {"--manifest", NULL,
     "instead of a merged trace what Perfetto (v58 and later) needs to open the files together as "
     "they are: a perfetto_manifest; with OUT ending in .tar it and the files",
     OPTION_NONE, NULL, offsetof(merge_wish, manifest), .needs = NULL},
};

static const option_table command_options = {
    .command = "merge",
    .usage = "PATH... -o OUT [--ranks LIST] [--steps A-B] [--from T] [--to T]\n"
             "PATH... -o OUT --manifest",
    .about =
        "Makes one Chrome trace of the traces of a job's ranks: on one time axis, each rank a\n"
        "process \"rank N host\", with arrows from who was waited for to who waited (messages,\n"
        "collectives). PATH is a trace (.gz too; also one that a killed run has left) or a folder\n"
        "with traces. Files of one node are put side by side by the node's clock. Clocks of\n"
        "different nodes are bounded by what ranks did together, where their traces have it, else\n"
        "by the nodes' real times; how far they may be wrong is said.",
    .notes = "Exit status: 0; 2 if a PATH cannot be used or OUT cannot be written.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "json gz",
    .who = "merge: ",
    .operands = offsetof(merge_wish, paths),
};

static bool find_sources(const merge_wish *w, merge_sources *s)
{
    for (size_t i = 0; i < w->paths.count; i++) {
        complaint why = {""};
        if (!sources_add(s, w->paths.all[i], w->out, &why))
            return complain("%s: %s", w->paths.all[i], why.text), false;
    }
    if (s->count == 0)
        return complain("merge: there is no trace in %s", w->paths.all[0]), false;
    wish_select_ranks(w, s);
    if (s->count == 0)
        return complain("merge: no trace is of one of these ranks"), false;
    sources_sort(s);
    return true;
}

static bool copy_all(merge_copy *c, merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!copy_source(c, &s->all[i]))
            return false;
    return true;
}

static bool write_merged(merge_copy *c, merge_sources *s, const char *path, merge_outcome *outcome)
{
    size_t length;
    char *head = merged_head(s, c->clocks, &length);
    rewrite out = {.file = PKI_TRACE_FILE_NONE};
    pki_joints *found = pki_joints_create(path);
    collector from;
    arrows drawn = {.to = c};
    collector_open(&from, found);
    c->collector = &from;
    c->out = &out;
    bool written = rewrite_open(&out, path, head, length, c->why) && copy_all(c, s) &&
                   arrows_put(&drawn, found, c->why) && rewrite_publish(&out);
    if (!written)
        rewrite_abandon(&out);
    outcome->arrows = drawn;
    collector_close(&from);
    pki_joints_destroy(found);
    free(head);
    return written;
}

static bool merge(const merge_wish *w, merge_sources *s, pki_clocks *clocks, complaint *why)
{
    merge_copy c = {.sources = s, .clocks = clocks, .window = w->window, .why = why};
    merge_outcome outcome = {.out = w->out, .copy = &c};
    if (!prescan(s, clocks, &w->steps, &c.window, w->out, why))
        return false;
    if (w->manifest)
        return manifest_write(w->out, s, clocks, why) && print_manifest(w->out, s, clocks);
    bool written = write_merged(&c, s, w->out, &outcome);
    if (written)
        print_merged(&outcome);
    copy_end(&c);
    return written;
}

/* What is wrong with the wish, before anything is read. */
static bool is_possible(const merge_wish *w)
{
    complaint why = {""};
    if (!w->paths.count)
        return complain("merge needs traces (pk merge --help)"), false;
    if (!w->out)
        return complain("merge needs -o and the name of a file (pk merge --help)"), false;
    if (w->manifest && (w->window.limited || w->steps.limited))
        return complain("merge: --manifest leaves the files as they are: no --steps, --from, --to"),
               false;
    if (w->steps.limited && w->window.limited)
        return complain("merge: --steps, or --from and --to"), false;
    return output_check(w->out, OUTPUT_FILE, &why) || (complain("%s", why.text), false);
}

int command_merge(int argc, char **argv)
{
    merge_wish w = {.window.to = UINT64_MAX};
    merge_sources sources = {0};
    pki_clocks clocks = {0};
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    bool read = status == OPTIONS_READ;
    status = read ? EXIT_UNUSABLE : status;
    if (read && is_possible(&w) && find_sources(&w, &sources)) {
        const pki_clocked_files files = {&sources.all->when, sources.count, sizeof *sources.all};
        pki_clocks_make(&clocks, &files);
        status = merge(&w, &sources, &clocks, &why) ? EXIT_OK : complain("%s", why.text);
    }
    pki_clocks_free(&clocks);
    sources_free(&sources);
    wish_free(&w);
    return status;
}
