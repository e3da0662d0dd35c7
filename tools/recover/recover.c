/* tools/recover/recover.c - pk recover: a whole trace from what a killed run has left, or from a trace that
 * was cut. */
#include "recover/recover.h"

#include "arguments.h"
#include "command.h"

#include <stdio.h>
#include <string.h>

static int print_help(void)
{
    printf(
        "usage: pk recover FILE [-o TRACE]\n"
        "\n"
        "Makes a whole trace of what is left of one. FILE is\n"
        "  an arena      the file ending in .arena that a killed run leaves beside its trace: the\n"
        "                trace is completed by what was still in memory, and regions that were\n"
        "                open at the end are closed there and marked\n"
        "  a cut trace   (.gz too): kept up to its last whole line\n"
        "\n"
        "  -o TRACE    where the trace goes (.gz: compressed). Without it an arena's trace is\n"
        "              completed in its place; a cut trace is never written over unasked\n"
        "  --help      this\n"
        "\n"
        "The arena is left where it is. Exit status: 0; 2 if FILE cannot be used.\n");
    return EXIT_OK;
}

typedef struct wish {
    const char *path, *out;
    bool help;
} wish;

/* How many arguments it was; 0 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
        return w->help = true;
    if (strcmp(option, "-o") != 0)
        complain("recover has no option \"%s\" (pk recover --help)", option);
    else if (!next || w->out)
        complain("recover: -o needs the name of %s (pk recover --help)",
                 next ? "one file" : "a file");
    else
        return w->out = next, 2;
    return 0;
}

static bool take_path(wish *w, const char *path)
{
    if (w->path)
        return complain("recover takes one file: \"%s\" or \"%s\"?", w->path, path), false;
    w->path = path;
    return true;
}

static bool take_arguments(wish *w, int argc, char **argv)
{
    arguments all = arguments_of(argc, argv);
    for (argument one; !w->help && arguments_next(&all, &one);) {
        int taken = one.is_option ? take_option(w, one.text, one.next) : take_path(w, one.text);
        if (taken <= 0)
            return false;
        arguments_took(&all, taken);
    }
    if (!w->path && !w->help)
        return complain("recover needs a file (pk recover --help)"), false;
    return true;
}

int command_recover(int argc, char **argv)
{
    wish w = {0};
    complaint why = {""};
    recovery done = {0};
    if (!take_arguments(&w, argc, argv))
        return EXIT_UNUSABLE;
    if (w.help)
        return print_help();
    if (!recover_file(w.path, w.out, &done, &why))
        return complain("%s: %s", w.path, why.text);
    if (done.from_memory || done.was_arena)
        printf("%s: %llu events, %llu of them from memory\n", done.out,
               (unsigned long long)done.events, (unsigned long long)done.from_memory);
    else
        printf("%s: %llu lines kept, %llu bytes behind them were no whole line\n", done.out,
               (unsigned long long)done.events, (unsigned long long)done.cut_bytes);
    return EXIT_OK;
}
