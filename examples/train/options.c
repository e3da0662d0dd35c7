#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the one clear line on stderr that every failure of the trainer gets ---- */

void complain(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "pk-train: %s\n", line);
}

/* ---- the trainer's command line ---- */

typedef enum kind { WHOLE, DECIMAL, TEXT, FLAG, OPTIONAL_WHOLE } kind;

/* One row is all there is to know about an option: parsing, ranges, defaults and --help read it
 * here. */
typedef struct setting {
    const char *name;
    kind kind;
    size_t offset;
    double least, most;
    const char *standard; /* its default; NULL: none, or said in `meaning` */
    const char *argument, *meaning;
} setting;

#define AT(member) offsetof(options, member)

static const setting settings[] = {
    {"steps", WHOLE, AT(steps), 1, 1e9, "300", "N", "training steps"},
    {"batch", WHOLE, AT(batch), 1, 4096, "8", "N", "sequences per step"},
    {"seq", WHOLE, AT(seq), 1, 8192, "64", "N", "bytes per sequence"},
    {"layers", WHOLE, AT(layers), 1, 96, "4", "N", "transformer blocks"},
    {"dim", WHOLE, AT(dim), 1, 8192, "64", "N", "width of the model"},
    {"heads", WHOLE, AT(heads), 1, 256, "4", "N", "attention heads; they divide the width"},
    {"lr", DECIMAL, AT(rate), 0, 10, "0.003", "X", "highest learning rate"},
    {"warmup", WHOLE, AT(warmup), 0, 1e9, "20", "N", "steps until it is reached"},
    {"clip", DECIMAL, AT(clip), 0, 1e9, "1", "X", "largest norm of the gradient; 0: any"},
    {"decay", DECIMAL, AT(decay), 0, 1, "0.1", "X", "weight decay"},
    {"seed", WHOLE, AT(seed), 0, 1e15, "1", "N", "of the weights and the order of the data"},
    {"checkpoint", TEXT, AT(checkpoint), 0, 0, NULL, "FILE",
     "where to keep the state of the training"},
    {"checkpoint-every", WHOLE, AT(checkpoint_every), 1, 1e9, "100", "N",
     "steps between checkpoints"},
    {"resume", FLAG, AT(resume), 0, 0, NULL, NULL, "go on from the checkpoint, if there is one"},
    {"queue", WHOLE, AT(queue), 1, 1024, "4", "N", "batches that the loader may be ahead"},
    {"slow-loader", OPTIONAL_WHOLE, AT(slow_ms), 1, 600000, NULL, "MS",
     "read so slowly that the training waits, or MS per batch"},
    {"slow-step", WHOLE, AT(slow_step), 1, 1e9, NULL, "N",
     "let the storage stand still before step N (the first is 0), so that one step is slow"},
    {"slow-compute", WHOLE, AT(slow_compute), 1, 10000, NULL, "PERCENT",
     "compute gradients so much slower, as a processor that is throttled"},
    {"print-every", WHOLE, AT(print_every), 1, 1e9, "20", "N", "steps between progress lines"},
    {"quiet", FLAG, AT(quiet), 0, 0, NULL, NULL, "no progress lines"},
    {"trace", TEXT, AT(trace), 0, 0, NULL, "FILE", "write a Chrome trace"},
    {"report", TEXT, AT(report), 0, 0, NULL, "FILE",
     "write perfkit's report (.json, or - for stderr)"},
    {"help", FLAG, AT(help), 0, 0, NULL, NULL, "this text"},
};

enum { SETTINGS = sizeof(settings) / sizeof(*settings), FIRST_CODE = 256 };

static bool bad_value(const setting *s, const char *text)
{
    complain("--%s takes a %s from %.10g to %.10g, not '%s'", s->name,
             s->kind == DECIMAL ? "number" : "whole number", s->least, s->most, text);
    return false;
}

static bool set_whole(const setting *s, uint64_t *field, const char *text)
{
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    bool number = *text >= '0' && *text <= '9' && *end == '\0';
    if (!number || (double)value < s->least || (double)value > s->most)
        return bad_value(s, text);
    *field = value;
    return true;
}

static bool set_decimal(const setting *s, double *field, const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);
    bool number = end != text && *end == '\0' && isfinite(value);
    if (!number || value < s->least || value > s->most)
        return bad_value(s, text);
    *field = value;
    return true;
}

static bool set(options *o, const setting *s, const char *text)
{
    void *field = (char *)o + s->offset;
    switch (s->kind) {
    case OPTIONAL_WHOLE:
        *(uint64_t *)field = UINT64_MAX; /* alone: LOADER_TOO_SLOW */
        return !text || set_whole(s, field, text);
    case WHOLE:
        return set_whole(s, field, text);
    case DECIMAL:
        return set_decimal(s, field, text);
    case TEXT:
        *(const char **)field = text;
        return true;
    case FLAG:
        *(bool *)field = true;
        return true;
    }
    return false;
}

static bool set_defaults(options *o)
{
    *o = (options){0};
    for (size_t i = 0; i < SETTINGS; i++)
        if (settings[i].standard && !set(o, &settings[i], settings[i].standard))
            return false;
    return true;
}

static bool complain_of(int code, const char *argument)
{
    if (code == ':')
        complain("%s needs a value (see --help)", argument);
    else if (optopt >= FIRST_CODE)
        complain("--%s takes no value (see --help)", settings[optopt - FIRST_CODE].name);
    else if (optopt > 0)
        complain("unknown option -%c (see --help)", optopt);
    else
        complain("unknown option %s (see --help)", argument);
    return false;
}

static int argument_of(const setting *s)
{
    if (s->kind == OPTIONAL_WHOLE)
        return optional_argument;
    return s->kind == FLAG ? no_argument : required_argument;
}

static bool parse_options(options *o, int argc, char *const *argv)
{
    struct option known[SETTINGS + 1] = {{0}};
    for (size_t i = 0; i < SETTINGS; i++)
        known[i] = (struct option){.name = settings[i].name,
                                   .has_arg = argument_of(&settings[i]),
                                   .val = FIRST_CODE + (int)i};
    optind = 0; /* begin anew, also on a second call */
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, ":", known, NULL);
        if (code == -1)
            return true;
        if (code < FIRST_CODE)
            return complain_of(code, argv[optind - 1]);
        if (!set(o, &settings[code - FIRST_CODE], optarg))
            return false;
    }
}

static bool makes_sense(const options *o)
{
    if (o->dim % o->heads != 0) {
        complain("--heads %llu does not divide --dim %llu", (unsigned long long)o->heads,
                 (unsigned long long)o->dim);
        return false;
    }
    if (o->resume && !o->checkpoint) {
        complain("--resume needs --checkpoint FILE");
        return false;
    }
    return true;
}

bool options_parse(options *o, int argc, char *const *argv)
{
    if (!set_defaults(o) || !parse_options(o, argc, argv))
        return false;
    if (optind < argc) {
        o->files = argv + optind;
        o->file_count = argc - optind;
    }
    return o->help || makes_sense(o);
}

static void print_setting(const setting *s)
{
    char left[64];
    const char *argument = s->argument ? s->argument : "";
    const char *form = s->kind == OPTIONAL_WHOLE ? "--%s[=%s]" : s->argument ? "--%s %s" : "--%s%s";
    snprintf(left, sizeof(left), form, s->name, argument);
    printf("  %-22s %s", left, s->meaning);
    if (s->standard)
        printf(" (%s)", s->standard);
    putchar('\n');
}

void options_print_help(void)
{
    puts("usage: pk-train [options] [file...]\n\n"
         "Trains a small transformer to predict the next byte of the files, by default of the\n"
         "licence texts that ship with Debian, and shows how a program is instrumented with\n"
         "perfkit.\n");
    for (size_t i = 0; i < SETTINGS; i++)
        print_setting(&settings[i]);
    puts("\nPK_TRACE_PATH, PK_REPORT_PATH and perfkit's other variables work too. SIGINT or\n"
         "SIGTERM ends the training after the current step, with a checkpoint if wanted.");
}
