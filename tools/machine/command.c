/* tools/machine/command.c - pk machine: what this machine can do, measured once and kept. */
#include "command.h"

#include "base/compiler.h"
#include "base/text.h"
#include "machine/measure.h"
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROUNDS 15u
#define STORAGE_MIB 256u

static const option all_options[] = {
    {"--show", NULL, "what was measured last, without measuring",
     .at = offsetof(machine_wish, show)},
    {"--json", NULL, "as JSON", .at = offsetof(machine_wish, json)},
    {"-o", "FILE",
     "where it is kept (default: PK_MACHINE_PATH, or ~/.cache/perfkit/machine-HOST.txt)",
     OPTION_FILE, option_text, offsetof(machine_wish, output), .needs = "a file"},
    {"--folder", "DIR", "measures writing and reading there, too; 5 x 256 MiB are written",
     OPTION_FOLDER, option_text, offsetof(machine_wish, folder), .needs = "a folder",
     .begins_group = true},
    {"--storage", "MIB", "so much in a round of it, a tenth of what is free at most (default {})",
     OPTION_WORD, option_number, offsetof(machine_wish, storage_mib), .least = 1, .most = 1u << 20,
     .shown = STORAGE_MIB},
    {"--memory", "MIB",
     "for all arrays together (default: 12 times the caches, at most a quarter of what is free)",
     OPTION_WORD, option_number, offsetof(machine_wish, memory_mib), .least = 1, .most = 1u << 24},
    {"--rounds", "N", "of each limit (default {})", OPTION_WORD, option_number,
     offsetof(machine_wish, rounds), .least = 1, .most = RATES_ROUNDS_MOST, .shown = ROUNDS},
};

static const option_table command_options = {
    .command = "machine",
    .usage = "[OPTION ...]",
    .about =
        "Measures what this machine can do: memory bandwidth (copy and triad) and peak\n"
        "arithmetic by each width of vectors, on one processor and on all that it may use. It\n"
        "takes some ten seconds, best on an idle machine, and is kept in a small file. Of GPUs\n"
        "it shows what their data sheets say.",
    .notes = "Exit status: 0; 2 if something could not be measured or kept.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .who = "machine: ",
    .operands = offsetof(machine_wish, none),
};

/* ---- its place ---- */

static bool find_output(machine_wish *w, char path[PATH_MAX], complaint *why)
{
    pki_machine here;
    if (!w->output)
        w->output = pki_variable("PK_MACHINE_PATH");
    if (w->output) {
        if (snprintf(path, PATH_MAX, "%s", w->output) < PATH_MAX)
            return true;
        return complaint_set(why, "machine: -o is longer than a path can be");
    }
    pki_machine_here(&here);
    if (pki_machine_path(here.host, path))
        return true;
    return complaint_set(why, "machine: neither XDG_CACHE_HOME nor HOME says where to keep it; "
                              "-o FILE does");
}

/* The folders in which it lies, as XDG wants them: nobody else's to read. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700); /* output_open says what is wrong */
        *slash = '/';
    }
}

static bool write_machine(const machine_wish *w, const pki_machine *m, char *path, complaint *why)
{
    output o;
    char text[PKI_MACHINE_BYTES];
    size_t n = pki_machine_print(m, text);
    if (!w->output)
        make_folders(path);
    return output_open(&o, path, OUTPUT_FILE, why) &&
           output_close(&o, fwrite(text, 1, n, o.to) == n, why);
}

/* ---- the command ---- */

static bool load(const machine_wish *w, const char *path, machine_found *found, complaint *why)
{
    char words[160];
    return pki_machine_load(path, w->output != NULL, &found->machine, words, sizeof words) ||
           complaint_set(why, "%s: %s", path, words);
}

static bool measure(const machine_wish *w, char *path, machine_found *found, complaint *why)
{
    /* Before seconds of work, what may be wrong at once. */
    if (w->output && !output_check(path, OUTPUT_FILE, why))
        return false;
    if (w->folder && !storage_measure(w->folder, w->storage_mib, &found->storage, why))
        return false;
    return machine_measure(w, found, why) && write_machine(w, &found->machine, path, why);
}

int command_machine(int argc, char **argv)
{
    static machine_found found;
    machine_wish w = {.rounds = ROUNDS, .storage_mib = STORAGE_MIB};
    complaint why = {""};
    char path[PATH_MAX];
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (w.none.count)
        return complain("machine takes no file, thus not \"%s\" (pk machine --help)",
                        w.none.all[0]);
    if (!find_output(&w, path, &why) ||
        !(w.show ? load(&w, path, &found, &why) : measure(&w, path, &found, &why)))
        return complain("%s", why.text);
    machine_find_devices(&found);
    if (w.json)
        machine_show_json(&found);
    else
        machine_show_text(&found);
    if (!w.json && !w.show)
        printf("\nkept in %s\n", path);
    return EXIT_OK;
}
