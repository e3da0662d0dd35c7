#include "load/parts.h"

#include "base/text.h"
#include "base/memory.h"
#include "base/compiler.h"
#include "out/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* When it began, which two runs do not share. */
static json_int_t run_of(const json_t *head)
{
    const json_t *metadata = json_object_get(head, "metadata");
    return json_integer_value(json_object_get(metadata, "start_unix_ns"));
}

static bool path_of(const trace_parts *p, uint32_t number, char path[PATH_MAX])
{
    char whole[PATH_MAX];
    int n = snprintf(whole, sizeof whole, "%s%s", p->folder, p->name);
    return n > 0 && n < PATH_MAX && pki_part_name(whole, number, path);
}

static bool is_of_run(const trace_parts *p, uint32_t number, json_int_t run)
{
    char path[PATH_MAX];
    complaint why = {""};
    trace t;
    if (!path_of(p, number, path) || !trace_open(&t, path, false, &why))
        return false;
    bool same = trace_has_events(&t) && run_of(trace_head(&t)) == run;
    trace_close(&t);
    return same;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void scan_folder(trace_parts *p, DIR *folder, json_int_t run)
{
    size_t room = 0;
    for (const struct dirent *e; (e = readdir(folder));) {
        uint32_t number = pki_part_of(e->d_name, p->name);
        if (number && is_of_run(p, number, run) &&
            pki_array_fit(&p->numbers, &room, p->count + 1, sizeof *p->numbers))
            p->numbers[p->count++] = number;
    }
    if (p->count)
        qsort(p->numbers, p->count, sizeof *p->numbers, ascending);
}

void parts_find(trace_parts *p, const char *path, const json_t *head)
{
    const char *name = pki_base_name(path);
    size_t before = (size_t)(name - path);
    memset(p, 0, sizeof *p);
    if (strcmp(path, "-") == 0 || pki_part_is_one(path) || run_of(head) == 0 ||
        before >= sizeof p->folder || strlen(name) >= sizeof p->name)
        return;
    memcpy(p->folder, path, before);
    memcpy(p->name, name, strlen(name) + 1);
    DIR *folder = opendir(before ? p->folder : ".");
    if (!folder)
        return;
    scan_folder(p, folder, run_of(head));
    closedir(folder);
}

void parts_forget(trace_parts *p)
{
    free(p->numbers);
    memset(p, 0, sizeof *p);
}

static bool read_one(const char *path, const trace_visitor *to, complaint *why)
{
    complaint wrong = {""};
    trace t;
    if (!trace_open(&t, path, true, &wrong))
        return complaint_set(why, "has a part %s that %s", path, wrong.text);
    bool read = trace_read(&t, to) || complaint_set(why, "has a part %s that %s", path, wrong.text);
    trace_close(&t);
    return read;
}

bool parts_read(const trace_parts *p, void (*begins)(void *user), const trace_visitor *to,
                complaint *why)
{
    char path[PATH_MAX];
    bool read = true;
    for (size_t i = 0; read && i < p->count; i++) {
        begins(to->user);
        read = !path_of(p, p->numbers[i], path) || read_one(path, to, why);
    }
    return read;
}
