/* tools/compare/baseline.c - stored runs to compare with: found by machine, program and options */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "compare/compare.h"
#include "files.h"
#include "memory.h"

#define PATH_MOST 4096

/* ---- names ---- */

/* Whatever the file says, it stays a name of one folder. */
static void put_name(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++) {
        char c = *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool fine = plain || c == '-' || c == '_' || (c == '.' && n > 0);
        out[n++] = fine ? c : '_';
    }
    out[n] = '\0';
}

/* FNV-1a. */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001B3u;
    return h;
}

/* FINGERPRINT or any other machine's, then the program's folder. */
static bool folder_of(char *out, const char *folder, const char *machine, const bench_file *fresh)
{
    char program[100], kind[100];
    put_name(program, sizeof program, pki_base_name(fresh->executable));
    put_name(kind, sizeof kind, machine[0] ? machine : "unknown");
    int length =
        snprintf(out, PATH_MOST, "%s/%s/%s-%016llx", folder, kind, program[0] ? program : "program",
                 (unsigned long long)hash(fresh->configuration));
    return length > 0 && length < PATH_MOST;
}

/* ---- finding ---- */

static bool has_common(const bench_file *a, const bench_file *b)
{
    for (uint32_t i = 0; i < a->names.count; i++)
        if (bench_file_find(b, a->series[i].name))
            return true;
    return false;
}

/* Runs of one minute ("2026-11-20T15:59") would show how little the machine moves in a minute. */
static bool is_same_moment(const bench_file *a, const bench_file *b)
{
    return strlen(a->date) >= 16 && strncmp(a->date, b->date, 16) == 0;
}

static bool load(const char *path, const bench_file *fresh, baseline *out, complaint *why)
{
    complaint wrong = {""};
    bench_file file;
    if (!bench_file_load(&file, path, &wrong))
        return complaint_set(why, "%s: %s", path, wrong.text);
    if (!has_common(&file, fresh)) {
        bench_file_finish(&file);
        return true;
    }
    if (out->count && is_same_moment(&out->files[out->count - 1], &file)) {
        bench_file_finish(&out->files[out->count - 1]);
        out->files[out->count - 1] = file;
        return true;
    }
    out->files = memory_resized(out->files, (out->count + 1) * sizeof *out->files);
    out->files[out->count++] = file;
    return true;
}

static int is_json(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && pki_ends_with(entry->d_name, ".json");
}

static int is_folder_like(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The names in a folder, sorted, hence by date; 0 if there is no such folder, -1 and errno. */
static int list(const char *folder, int (*wanted)(const struct dirent *), struct dirent ***names)
{
    int count = scandir(folder, names, wanted, alphasort);
    return count < 0 && (errno == ENOENT || errno == ENOTDIR) ? 0 : count;
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    if (count > 0)
        free(names);
}

static bool load_folder(const char *folder, const bench_file *fresh, size_t keep, baseline *out,
                        complaint *why)
{
    struct dirent **names = NULL;
    int count = list(folder, is_json, &names);
    if (count < 0)
        return complaint_set(why, "%s: %s", folder, strerror(errno));
    bool fits = true;
    size_t first = (size_t)count > keep ? (size_t)count - keep : 0;
    for (size_t i = first; i < (size_t)count && fits; i++) {
        char path[PATH_MOST + 300];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        fits = load(path, fresh, out, why);
    }
    free_names(names, count);
    return fits;
}

/* Of the other machines the first one that has any. */
static bool load_others(const char *folder, const bench_file *fresh, size_t keep, baseline *out,
                        complaint *why)
{
    struct dirent **names = NULL;
    char path[PATH_MOST];
    int count = list(folder, is_folder_like, &names);
    bool fits = true;
    for (int i = 0; i < count && fits && out->count == 0; i++)
        fits = !folder_of(path, folder, names[i]->d_name, fresh) ||
               load_folder(path, fresh, keep, out, why);
    free_names(names, count);
    out->other_machine = out->count > 0;
    return fits;
}

bool baseline_find(const char *folder, const bench_file *fresh, size_t keep, baseline *out,
                   complaint *why)
{
    char path[PATH_MOST];
    *out = (baseline){0};
    if (!folder_of(path, folder, fresh->fingerprint, fresh))
        return complaint_set(why, "the name is too long");
    bool fits = load_folder(path, fresh, keep, out, why);
    if (fits && out->count == 0)
        fits = load_others(folder, fresh, keep, out, why);
    if (!fits)
        baseline_finish(out);
    return fits;
}

void baseline_finish(baseline *b)
{
    for (size_t i = 0; i < b->count; i++)
        bench_file_finish(&b->files[i]);
    free(b->files);
    *b = (baseline){0};
}

/* ---- storing ---- */

static bool make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static bool copy(FILE *from, FILE *to)
{
    char piece[65536];
    size_t got;
    while ((got = fread(piece, 1, sizeof piece, from)) > 0)
        if (fwrite(piece, 1, got, to) != got)
            return false;
    return !ferror(from) && fflush(to) == 0;
}

static bool copy_file(const char *from, const char *folder, const char *name, complaint *why)
{
    char path[PATH_MOST + 300];
    output target;
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    FILE *source = fopen(from, "re");
    if (!source)
        return complaint_set(why, "%s: %s", from, strerror(errno));
    bool opened = output_open(&target, path, OUTPUT_FILE, why);
    bool whole = opened && copy(source, target.to);
    if (opened && ferror(source))
        complaint_set(why, "%s: %s", from, strerror(errno));
    fclose(source);
    return opened && output_close(&target, whole, why);
}

static void remove_oldest(const char *folder, size_t keep)
{
    struct dirent **names = NULL;
    int count = list(folder, is_json, &names);
    for (int i = 0; i + (int)keep < count; i++) {
        char path[PATH_MOST + 300];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        unlink(path);
    }
    free_names(names, count);
}

bool baseline_store(const char *folder, const bench_file *fresh, size_t keep, complaint *why)
{
    char path[PATH_MOST], date[40], run[40] = "run", name[100];
    if (!folder_of(path, folder, fresh->fingerprint, fresh))
        return complaint_set(why, "%s: the name is too long", folder);
    put_name(date, sizeof date, fresh->date[0] ? fresh->date : "undated");
    for (uint32_t i = 0; i < fresh->names.count; i++)
        if (fresh->series[i].run_count && fresh->series[i].runs[0].id[0])
            put_name(run, sizeof run, fresh->series[i].runs[0].id);
    snprintf(name, sizeof name, "%s-%s", date, run);
    if (!make_folders(path))
        return complaint_set(why, "%s: %s", path, strerror(errno));
    if (!copy_file(fresh->path, path, name, why))
        return false;
    remove_oldest(path, keep);
    return true;
}
