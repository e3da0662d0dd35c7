/* tests/unit/environment_fixture.c - on which machine the runs of the fixtures were, and what
 * they reached of it. */
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
                           .branch = strdup("main")};
}

static void fill_hostile(pki_environment *e, const char *hostile)
{
    char **const texts[] = {&e->cpu,    &e->architecture, &e->kernel,   &e->gpu,
                            &e->driver, &e->command,      &e->compiler, &e->program_compiler,
                            &e->commit, &e->branch,       &e->build_id};
    e->memory = e->processors = UINT64_MAX;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = strdup(hostile);
}

static void fill_utilisation(pki_utilisation *u, const char *hostile)
{
    *u = (pki_utilisation){.steps = 98,
                           .time = 1641089480,
                           .model = 8.2e11,
                           .hardware = 9.85e11,
                           .peak = 1e12,
                           .mfu = 0.5,
                           .hfu = 0.6,
                           .precision = strdup(hostile ? hostile : "fp32"),
                           .source = strdup(hostile ? hostile : "16 processors of node, by hand")};
}

static pki_cpu_side cpu_side(void)
{
    return (pki_cpu_side){.looks = 25,
                          .forced = 31,
                          .own = 4000,
                          .busy = 7.5,
                          .busy_most = 9,
                          .threads = 21,
                          .allowed = 16,
                          .allowed_busy = 16,
                          .quota = 12.5,
                          .quota_periods = 250,
                          .quota_throttled = 3,
                          .quota_throttled_time = 12000000,
                          .clock_mean = 2.9e9,
                          .clock_most = 3.5e9,
                          .nodes = 2,
                          .near_bytes = (uint64_t)3 << 30,
                          .far_bytes = (uint64_t)1 << 20,
                          .largest_node = 0.6,
                          .own_nodes = 2};
}

void fixture_machine(pki_summary *s, const char *hostile)
{
    if (hostile)
        fill_hostile(&s->environment, hostile);
    else
        fill_usual(&s->environment);
    fill_utilisation(&s->steps.utilisation, hostile);
    s->cpu_side = cpu_side();
    fixture_costs(s, hostile);
}
