#include "merge/manifest.h"

#include "base/text.h"
#include "memory.h"
#include "merge/tar.h"
#include "files.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAME "perfetto_manifest.json"

static void set(json_t *object, const char *key, json_t *value)
{
    memory_needed(json_object_set_new(object, key, value) == 0);
}

/* In an archive, unique whatever folders they came from; short enough for its head. Beside a
 * manifest alone: as it has to be called in the archive that somebody makes of them. */
static void name_of(char *name, size_t room, const merge_source *s, size_t place, bool archive)
{
    const char *path = s->path, *last = pki_base_name(s->path);
    if (!archive) {
        while (*path == '/' || strncmp(path, "./", 2) == 0)
            path += *path == '/' ? 1 : 2;
        snprintf(name, room, "%s", path);
        return;
    }
    size_t n = strlen(last);
    snprintf(name, room, "%06zu-%s", place, last + (n > 90 ? n - 90 : 0));
}

/* Processes of one machine with the same number would become one. */
static bool meets_another(const merge_sources *s, size_t place)
{
    const merge_source *it = &s->all[place];
    for (size_t i = 0; i < place; i++)
        if (s->all[i].when.clock == it->when.clock && s->all[i].pid == it->pid &&
            s->all[i].process != it->process)
            return true;
    return false;
}

static json_t *machine_of(const merge_sources *s, size_t place)
{
    char name[160];
    const merge_source *it = &s->all[place];
    const char *host = *it->host ? it->host : "unknown";
    bool alone = !meets_another(s, place);
    snprintf(name, sizeof name, alone ? "%.64s" : "%.64s, process of %zu", host, place);
    json_t *o = json_object();
    memory_needed(o != NULL);
    set(o, "name", json_string(name));
    return o;
}

/* Perfetto shifts a file as a whole: drift is evened out over its length. */
static json_t *file_entry(const merge_sources *s, const pki_clocks *c, size_t place, bool archive)
{
    char name[4096];
    const merge_source *it = &s->all[place];
    uint64_t middle = it->when.last_ns / 2, at = pki_clocks_axis(c, &it->when, middle);
    json_t *o = json_object(), *clocks = json_object();
    memory_needed(o && clocks);
    name_of(name, sizeof name, it, place, archive);
    set(o, "path", json_string(name));
    set(o, "machine", machine_of(s, place));
    set(clocks, "offset_ns", json_integer((json_int_t)(at - middle)));
    set(o, "clocks", clocks);
    return o;
}

static char *manifest_text(const merge_sources *s, const pki_clocks *c, bool archive)
{
    json_t *o = json_object(), *inside = json_object(), *files = json_array();
    memory_needed(o && inside && files);
    for (size_t i = 0; i < s->count; i++)
        memory_needed(json_array_append_new(files, file_entry(s, c, i, archive)) == 0);
    set(inside, "version", json_integer(1));
    set(inside, "files", files);
    set(o, "perfetto_manifest", inside);
    char *text = json_dumps(o, JSON_INDENT(1));
    memory_needed(text != NULL);
    json_decref(o);
    return text;
}

static bool put_archive(FILE *to, const merge_sources *s, const char *text, complaint *why)
{
    bool put = tar_put_text(to, NAME, text, strlen(text));
    for (size_t i = 0; put && i < s->count; i++) {
        char name[128];
        name_of(name, sizeof name, &s->all[i], i, true);
        put = tar_put_file(to, name, s->all[i].path, why);
    }
    return put && tar_end(to);
}

bool manifest_write(const char *out, const merge_sources *s, const pki_clocks *c, complaint *why)
{
    output o;
    bool archive = pki_ends_with(out, ".tar");
    if (!output_open(&o, out, OUTPUT_FILE, why))
        return false;
    char *text = manifest_text(s, c, archive);
    bool put = archive ? put_archive(o.to, s, text, why) : fprintf(o.to, "%s\n", text) > 0;
    free(text);
    return output_close(&o, put, why);
}
