/* For a pull request's comment: GitHub's tables. */
#include "bench/forms/document.h"
#include "bench/forms/markup.h"

/* As code, so that no character means anything but itself; a bar would still end the cell. */
static void put_name(FILE *file, const char *name)
{
    fputc('`', file);
    while (*name) {
        const char *one;
        size_t length;
        name += pki_bench_character(name, &one, &length);
        if (*one == '|')
            fputc('\\', file);
        fwrite(*one == '`' ? "'" : one, 1, length, file);
    }
    fputc('`', file);
}

static void put_row(FILE *file, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    char rates[128], device[192];
    fputs("| ", file);
    put_name(file, row->name);
    if (!pki_bench_row_measured(row)) {
        fprintf(file, " | %s | | | | | ", pki_bench_outcome_name(r));
        pki_bench_put_markdown(file, r->reason);
        fputs(" |\n", file);
        return;
    }
    pki_bench_rates(row, rates, sizeof rates);
    fprintf(file, " | %s | ± %.1f %% | %s | %s | %zu | ", pki_bench_time(r->median).text,
            100 * pki_bench_half_width(r), pki_bench_time(r->p99).text, pki_bench_time(r->cpu).text,
            (size_t)r->count);
    pki_bench_put_markdown(file, r->verdict_text);
    pki_bench_device_text(row, device, sizeof device);
    fprintf(file, "%s%s%s%s%s", *device ? "; " : "", device, *rates ? "; " : "", rates,
            *row->label ? "; " : "");
    pki_bench_put_markdown(file, row->label);
    fputs(" |\n", file);
}

void pki_bench_markdown(const pki_bench_document *d, FILE *file)
{
    const pki_bench_environment *e = d->environment;
    fputs("| benchmark | median | | p99 | CPU | samples | |\n"
          "|---|--:|--:|--:|--:|--:|---|\n",
          file);
    for (size_t i = 0; i < d->row_count; i++)
        put_row(file, &d->rows[i]);
    fputs("\n<sub>", file);
    pki_bench_put_markdown(file, *e->cpu ? e->cpu : e->architecture);
    fprintf(file, ", %u processors, ", e->cpus_online);
    pki_bench_put_markdown(file, e->kernel);
    fprintf(
        file,
        ", perfkit %s. ± is half the confidence interval of the median within this process run.",
        d->version);
    for (size_t i = 0; i < d->warning_count; i++) {
        fputs(i ? "; " : " Mind: ", file);
        pki_bench_put_markdown(file, d->warnings[i].text);
    }
    fputs("</sub>\n", file);
}
