/* tools/bench/compare/markdown.c - for a pull request's comment. */
#include "bench/compare/compare.h"
#include "bench/forms/markup.h"

static void put_row(FILE *file, const compare_row *row)
{
    bool changed = row->decided && row->decision.change >= PKI_FASTER;
    fputs("| ", file);
    pki_bench_put_markdown(file, row->name);
    fprintf(file, " | %s | %s | %s | %s | %s", compare_format_time(row->old_time).text,
            compare_format_time(row->new_time).text, compare_format_ratio(row).text,
            compare_format_interval(row).text, changed ? "**" : "");
    pki_bench_put_markdown(file, compare_format_verdict(row).text);
    fputs(changed ? "** |\n" : " |\n", file);
}

static void put_one(FILE *file, const comparison *c)
{
    fputs("**", file);
    pki_bench_put_markdown(file, compare_format_summary(c).text);
    fputs("** (", file);
    pki_bench_put_markdown(file, c->old_path);
    fputs(" → ", file);
    pki_bench_put_markdown(file, c->new_path);
    fprintf(file, ")\n\n");
    for (size_t i = 0; i < c->warning_count; i++) {
        fputs("> ⚠ ", file);
        pki_bench_put_markdown(file, c->warnings[i]);
        fputs("\n\n", file);
    }
    fputs("| benchmark | old | new | ratio | interval | verdict |\n"
          "|---|--:|--:|--:|:-:|---|\n",
          file);
    for (size_t i = 0; i < c->count; i++)
        put_row(file, &c->rows[i]);
    fputs("\n", file);
    pki_bench_put_markdown(file, compare_format_method(c).text);
    fprintf(file, "; margin %.3g %%, alpha %.3g over all of them together (Holm)\n",
            100 * c->options.threshold, c->options.alpha);
}

void compare_markdown(const comparison *steps, size_t count, FILE *file)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc('\n', file);
        put_one(file, &steps[i]);
    }
}
