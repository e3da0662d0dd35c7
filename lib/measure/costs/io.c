#include "measure/costs/io.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/small_file.h"

static bool take(const char *text, const char *key, uint64_t *value)
{
    char number[32];
    if (!pki_small_file_field(text, key, number, sizeof number))
        return false;
    *value = strtoull(number, NULL, 10);
    return true;
}

bool pki_io_parse(const char *text, pki_io_counts *c)
{
    return take(text, "rchar", &c->read_chars) && take(text, "wchar", &c->write_chars) &&
           take(text, "syscr", &c->read_calls) && take(text, "syscw", &c->write_calls) &&
           take(text, "read_bytes", &c->read_device) && take(text, "write_bytes", &c->write_device);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

pki_io_counts pki_io_more(const pki_io_counts *now, const pki_io_counts *before)
{
    return (pki_io_counts){
        less(now->read_chars, before->read_chars),   less(now->write_chars, before->write_chars),
        less(now->read_calls, before->read_calls),   less(now->write_calls, before->write_calls),
        less(now->read_device, before->read_device), less(now->write_device, before->write_device)};
}

void pki_io_add(pki_io_account *a, const pki_io_counts *counts, uint64_t now)
{
    if (!a->begun) {
        *a = (pki_io_account){true, now, now, now, *counts, *counts, *counts, 0, 0};
        return;
    }
    a->last = *counts;
    a->at = now;
    if (now - a->window_at < PKI_IO_WINDOW)
        return;
    double seconds = (double)(now - a->window_at) / 1e9;
    pki_io_counts more = pki_io_more(counts, &a->window);
    a->best_read = PKI_MAX(a->best_read, (double)more.read_device / seconds);
    a->best_write = PKI_MAX(a->best_write, (double)more.write_device / seconds);
    a->window = *counts;
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
