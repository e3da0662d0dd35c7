/* tools/recover/recover.c - pk recover: a whole trace from what a killed run has left, or from a
 * trace that was cut. */
#include "recover/recover.h"

#include "base/compiler.h"
#include "command.h"
#include "command_line.h"

#include <stdio.h>

typedef struct wish {
    recovery_wish is;
    operands files;
} wish;

static bool parse_output(void *to, const option_given *given)
{
    wish *w = to;
    if (given->text && w->is.out)
        return complain("recover: -o needs the name of one file (pk recover --help)"), false;
    return option_text(to, given);
}

static const option all_options[] = {
    {"-o", "TRACE",
     "where the trace goes (.gz: compressed). Without it an arena's trace is completed in its "
     "place; a cut trace is never overwritten unasked",
     OPTION_FILE, parse_output, offsetof(wish, is.out),
     .needs = "the name of a file (pk recover --help)"},
    {"--trace", "FILE",
     "the trace that the run wrote, if it lies neither beside the arena nor where the run had it",
     OPTION_FILE, option_text, offsetof(wish, is.trace),
     .needs = "the name of a file (pk recover --help)"},
};

static const option_table command_options = {
    .command = "recover",
    .usage = "FILE [-o TRACE]",
    .about =
        "Completes the trace of a run that was killed, or a trace that was cut. FILE is\n"
        "  an arena      the file ending in .arena that a killed run leaves beside its trace, or\n"
        "                where arena_path had it: the trace is completed by what was still in\n"
        "                memory, and regions that were open at the end are closed there and\n"
        "                marked\n"
        "  a cut trace   (.gz too): kept up to its last whole line",
    .notes = "The arena is left where it is. Exit status: 0; 2 if FILE cannot be used.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "arena json gz",
    .who = "recover: ",
    .operands = offsetof(wish, files),
};

int command_recover(int argc, char **argv)
{
    wish w = {0};
    complaint why = {""};
    recovery done = {0};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    const char *path = w.files.all[0];
    if (!w.files.count)
        return complain("recover needs a file (pk recover --help)");
    if (w.files.count > 1)
        return complain("recover takes one file: \"%s\" or \"%s\"?", path, w.files.all[1]);
    if (!recover_file(path, &w.is, &done, &why))
        return complain("%s: %s", path, why.text);
    if (done.from_memory || done.was_arena)
        printf("%s: %llu events, %llu of them from memory\n", done.out,
               (unsigned long long)done.events, (unsigned long long)done.from_memory);
    else
        printf("%s: %llu lines kept, %llu bytes of a cut line dropped\n", done.out,
               (unsigned long long)done.events, (unsigned long long)done.cut_bytes);
    return EXIT_OK;
}
