#include "machine/measure.h"

#include "measure/machine/devices.h"
#include "memory.h"
#include "out/json_write.h"

#include <stdio.h>

static void put_rates(pki_json *j, const pki_limit *l)
{
    pki_json_uint(j, "best", l->best);
    pki_json_uint(j, "median", l->median);
    pki_json_uint(j, "worst", l->worst);
    pki_json_uint(j, "rounds", l->rounds);
}

static void put_limits(pki_json *j, const pki_machine *m)
{
    pki_json_open(j, "limits", '[');
    for (size_t i = 0; i < m->limit_count; i++) {
        pki_json_row(j);
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", m->limits[i].name);
        pki_json_text(j, "threads", m->limits[i].all ? "all" : "one");
        put_rates(j, &m->limits[i]);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_surroundings(pki_json *j, const machine_found *f)
{
    const pki_bench_environment *e = &f->environment;
    pki_json_uint(j, "processors_allowed", f->processors);
    pki_json_real(j, "clock_hz", f->clock_hz);
    pki_json_text(j, "governor", e->governor);
    pki_json_real(j, "load", e->load[0]);
    pki_json_real(j, "on_processor", f->on_processor);
    pki_json_real(j, "cgroup_processors", e->cgroup_cpus);
    pki_json_uint(j, "cgroup_memory_bytes", e->cgroup_memory_bytes);
    pki_json_text(j, "virtual_machine", e->virtual_machine);
    pki_json_uint(j, "array_bytes", f->array_bytes);
    pki_json_uint(j, "cache_bytes", f->cache_bytes);
    pki_json_bool(j, "cache_known", f->cache_known);
}

static void put_storage(pki_json *j, const storage_figures *s)
{
    if (!s->folder)
        return;
    pki_json_row(j);
    pki_json_open(j, "storage", '{');
    pki_json_text(j, "folder", s->folder);
    pki_json_bool(j, "direct", s->direct);
    pki_json_uint(j, "bytes", s->bytes);
    pki_json_open(j, "write", '{');
    put_rates(j, &s->write);
    pki_json_close(j, '}');
    if (s->read.rounds) {
        pki_json_open(j, "read", '{');
        put_rates(j, &s->read);
        pki_json_close(j, '}');
    }
    pki_json_close(j, '}');
}

static void put_device(pki_json *j, const char *name)
{
    const pki_device_limits *d = pki_device_find(name);
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "name", name);
    pki_json_bool(j, "in_table", d != NULL);
    if (d) {
        pki_json_text(j, "source", d->source);
        pki_json_real(j, "bandwidth", d->bandwidth);
        pki_json_real(j, "fp64", d->fp64);
        pki_json_real(j, "fp64_tensor", d->fp64_tensor);
        pki_json_real(j, "fp32", d->fp32);
        pki_json_real(j, "tf32", d->tf32);
        pki_json_real(j, "bf16", d->bf16);
        pki_json_real(j, "fp16", d->fp16);
        pki_json_real(j, "fp8", d->fp8);
    }
    pki_json_close(j, '}');
}

void machine_show_json(const machine_found *f)
{
    pki_plain plain;
    pki_json j = {.file = stdout, .rows = true};
    memory_needed(pki_plain_enter(&plain));
    pki_json_open(&j, NULL, '{');
    pki_json_text(&j, "host", f->machine.host);
    pki_json_text(&j, "cpu", f->machine.cpu);
    pki_json_uint(&j, "processors", f->machine.processors);
    pki_json_uint(&j, "measured", f->machine.measured);
    if (f->processors)
        put_surroundings(&j, f);
    put_limits(&j, &f->machine);
    put_storage(&j, &f->storage);
    pki_json_open(&j, "devices", '[');
    for (unsigned i = 0; i < f->device_count; i++)
        put_device(&j, f->devices[i]);
    pki_json_close(&j, ']');
    pki_json_close(&j, '}');
    putchar('\n');
    pki_plain_leave(&plain);
}
