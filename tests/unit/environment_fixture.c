/* tests/unit/environment_fixture.c - on which machine the runs of the fixtures were. */
#include "report_fixture.h"

#include <string.h>

static void fill_usual(pki_environment *e)
{
    *e = (pki_environment){.memory = (uint64_t)64 << 30,
                           .processors = 16,
                           .cpu = strdup("A processor, of some kind"),
                           .architecture = strdup("x86_64"),
                           .kernel = strdup("Linux 6.1.0"),
                           .gpu = strdup(""),
                           .driver = strdup(""),
                           .command = strdup("train --steps 300 --token ***"),
                           .compiler = strdup("gcc 12.2.0"),
                           .program_compiler = strdup("GCC: (Debian 12.2.0-14) 12.2.0"),
                           .build_id = strdup("0123456789abcdef0123456789abcdef01234567"),
                           .commit = strdup("89abcdef0123456789abcdef0123456789abcdef"),
                           .branch = strdup("main"),
                           .modified = strdup("perhaps")};
}

static void fill_hostile(pki_environment *e, const char *hostile)
{
    char **const texts[] = {&e->cpu,    &e->architecture, &e->kernel,   &e->gpu,
                            &e->driver, &e->command,      &e->compiler, &e->program_compiler,
                            &e->commit, &e->branch,       &e->modified, &e->build_id};
    e->memory = e->processors = UINT64_MAX;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = strdup(hostile);
}

void fixture_environment(pki_environment *e, const char *hostile)
{
    if (hostile)
        fill_hostile(e, hostile);
    else
        fill_usual(e);
}
