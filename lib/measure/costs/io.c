#include "measure/costs/io.h"

#include <string.h>

#include "base/compiler.h"
#include "base/files.h"

bool pki_io_parse(const char *text, pki_io_counts *c)
{
    return pki_small_file_number(text, "rchar", &c->read_chars) &&
           pki_small_file_number(text, "wchar", &c->write_chars) &&
           pki_small_file_number(text, "syscr", &c->read_calls) &&
           pki_small_file_number(text, "syscw", &c->write_calls) &&
           pki_small_file_number(text, "read_bytes", &c->read_device) &&
           pki_small_file_number(text, "write_bytes", &c->write_device);
}

pki_io_counts pki_io_more(const pki_io_counts *now, const pki_io_counts *before)
{
    return (pki_io_counts){pki_saturating_sub(now->read_chars, before->read_chars),
                           pki_saturating_sub(now->write_chars, before->write_chars),
                           pki_saturating_sub(now->read_calls, before->read_calls),
                           pki_saturating_sub(now->write_calls, before->write_calls),
                           pki_saturating_sub(now->read_device, before->read_device),
                           pki_saturating_sub(now->write_device, before->write_device)};
}

/* Two files are read one behind the other, and what reading the first took is in the second alone:
 * the difference may be a few bytes less than before, and counts only grow. */
static pki_io_counts most_of(const pki_io_counts *a, const pki_io_counts *b)
{
    return (pki_io_counts){
        PKI_MAX(a->read_chars, b->read_chars),   PKI_MAX(a->write_chars, b->write_chars),
        PKI_MAX(a->read_calls, b->read_calls),   PKI_MAX(a->write_calls, b->write_calls),
        PKI_MAX(a->read_device, b->read_device), PKI_MAX(a->write_device, b->write_device)};
}

void pki_io_add(pki_io_account *a, const pki_io_counts *counts, uint64_t now)
{
    if (!a->begun) {
        *a = (pki_io_account){true, now, now, now, *counts, *counts, *counts, 0, 0};
        return;
    }
    a->last = most_of(counts, &a->last);
    a->at = now;
    if (now - a->window_at < PKI_IO_WINDOW)
        return;
    double seconds = (double)(now - a->window_at) / 1e9;
    pki_io_counts more = pki_io_more(&a->last, &a->window);
    a->best_read = PKI_MAX(a->best_read, (double)more.read_device / seconds);
    a->best_write = PKI_MAX(a->best_write, (double)more.write_device / seconds);
    a->window = a->last;
    a->window_at = now;
}

void pki_io_fill(const pki_io_account *a, pki_io_summary *out)
{
    pki_io_counts all = pki_io_more(&a->last, &a->first);
    out->observed = a->at - a->since;
    out->read_chars = all.read_chars;
    out->write_chars = all.write_chars;
    out->read_calls = all.read_calls;
    out->write_calls = all.write_calls;
    out->read_device = all.read_device;
    out->write_device = all.write_device;
    out->best_read = a->best_read;
    out->best_write = a->best_write;
}
