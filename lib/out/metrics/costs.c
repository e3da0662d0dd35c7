/* lib/out/metrics/costs.c - what the process costs beside time. */
#include "base/compiler.h"
#include "out/metrics/write.h"

typedef struct row {
    const char *name, *type, *help;
    uint64_t value;
} row;

static void put_rows(pki_prom *w, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pki_prom_one_count(w, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
}

static void put_labelled(pki_prom *w, const char *key, const char *label, uint64_t count)
{
    pki_prom_sample(w, "");
    pki_prom_label(w, key, label);
    pki_prom_count(w, count);
}

static void put_memory(pki_prom *w)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    const pki_memory_sum *m = &c->memory;
    const row resident[] = {{"pk_process_resident_memory_bytes", "gauge",
                             "Memory of the process, resident.", m->resident},
                            {"pk_process_resident_memory_max_bytes", "gauge",
                             "The most since the program's start.", m->most_resident}};
    if (m->looks) {
        put_rows(w, resident, PKI_COUNT_OF(resident));
        pki_prom_family(w, "pk_process_page_faults_total", "counter",
                        "Page faults in the session; major: from a disk.");
        put_labelled(w, "kind", "minor", m->minor_faults);
        put_labelled(w, "kind", "major", m->major_faults);
    }
    if (c->allocated_known)
        pki_prom_one_count(w, "pk_allocated_bytes", "gauge",
                           "Bytes that libpk_alloc has seen allocated and not freed.",
                           c->allocated);
}

static void put_places(pki_prom *w, const char *name, const char *help, size_t offset)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    pki_prom_family(w, name, "gauge", help);
    for (size_t i = 0; i < c->place_count; i++) {
        const pki_metrics_place *p = &c->places[i];
        put_labelled(w, "device", p->name,
                     *(const uint64_t *)(const void *)((const char *)p + offset));
    }
}

/* "host": what is pinned of its memory. */
static void put_devices(pki_prom *w)
{
    if (!w->metrics->costs.place_count)
        return;
    put_places(w, "pk_device_memory_bytes", "Allocated by the process and not freed.",
               offsetof(pki_metrics_place, live));
    put_places(w, "pk_device_memory_max_bytes", "The most so far.",
               offsetof(pki_metrics_place, peak));
    put_places(w, "pk_device_pool_reserved_bytes", "Reserved by memory pools.",
               offsetof(pki_metrics_place, pool_reserved));
    put_places(w, "pk_device_pool_used_bytes", "Of that, in use.",
               offsetof(pki_metrics_place, pool_used));
}

static void put_files(pki_prom *w)
{
    const pki_io_counts *io = &w->metrics->costs.io;
    const row rows[] = {
        {"pk_io_read_bytes_total", "counter", "Bytes of calls that read, whatever from.",
         io->read_chars},
        {"pk_io_written_bytes_total", "counter", "Bytes of calls that write, whatever to.",
         io->write_chars},
        {"pk_io_read_calls_total", "counter", "Calls that read.", io->read_calls},
        {"pk_io_write_calls_total", "counter", "Calls that write.", io->write_calls},
        {"pk_io_device_read_bytes_total", "counter", "Bytes that came from a device.",
         io->read_device},
        {"pk_io_device_written_bytes_total", "counter", "Bytes written for a device.",
         io->write_device}};
    if (w->metrics->costs.io_known)
        put_rows(w, rows, PKI_COUNT_OF(rows));
}

static void put_energy(pki_prom *w)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    if (!c->energy_count)
        return;
    pki_prom_family(w, "pk_energy_joules_total", "counter",
                    "Energy by counter; one may be part of another: package-0 dram of package-0.");
    for (size_t i = 0; i < c->energy_count; i++) {
        pki_prom_sample(w, "");
        pki_prom_label(w, "counter", c->energy[i].name);
        pki_prom_joules(w, c->energy[i].microjoules);
    }
}

/* No counter: what is unfinished now becomes something else. */
static void put_goodput(pki_prom *w)
{
    const pki_goodput_summary *g = &w->metrics->costs.goodput;
    if (!g->up)
        return;
    pki_prom_family(w, "pk_goodput_seconds", "gauge",
                    "What the time since the process's start has gone into; the parts add up.");
    for (size_t i = 0; i < PKI_PARTS; i++) {
        pki_prom_sample(w, "");
        pki_prom_label(w, "part", pki_part_names[i]);
        pki_prom_seconds(w, g->parts[i]);
    }
    pki_prom_one_count(w, "pk_recomputed_steps_total", "counter",
                       "Steps that an earlier run of the job had made, and lost.", g->recomputed);
}

static void put_checkpoints(pki_prom *w)
{
    const pki_metrics_costs *c = &w->metrics->costs;
    if (!c->saves)
        return;
    pki_prom_one_count(w, "pk_checkpoints_total", "counter", "Checkpoints that are complete.",
                       c->saves);
    pki_prom_one_count(w, "pk_checkpoint_bytes_total", "counter", "Their bytes, as announced.",
                       c->save_bytes);
    pki_prom_one_time(w, "pk_checkpoint_seconds_total", "counter", "Time in phases that save one.",
                      c->save_time);
}

static void put_state(pki_prom *w, const char *state, uint64_t ns)
{
    pki_prom_sample(w, "");
    pki_prom_label(w, "state", state);
    pki_prom_seconds(w, ns);
}

static void put_stepper(pki_prom *w)
{
    const pki_processor *p = &w->metrics->toll.stepper;
    const pki_metrics_costs *c = &w->metrics->costs;
    uint64_t known = p->running + p->ready;
    if (!p->observed)
        return;
    pki_prom_family(w, "pk_step_thread_seconds_total", "counter",
                    "Of the thread that makes steps; ready: it could run, and had no processor.");
    put_state(w, "running", p->running);
    put_state(w, "ready", p->ready);
    put_state(w, "waiting", p->observed > known ? p->observed - known : 0);
    pki_prom_family(w, "pk_step_thread_switches_total", "counter",
                    "Its switches; forced: it was taken off its processor.");
    put_labelled(w, "kind", "forced", c->forced);
    put_labelled(w, "kind", "own", c->own);
}

void pki_prom_costs(pki_prom *w)
{
    put_memory(w);
    put_devices(w);
    put_stepper(w);
    put_files(w);
    put_energy(w);
    put_goodput(w);
    put_checkpoints(w);
}
