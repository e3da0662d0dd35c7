#include "base/revision.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"

#define PATH 4096
#define LEVELS_MOST 32
#define PACKED_MOST ((size_t)1 << 20) /* bytes of packed-refs */

typedef struct repository {
    char top[PATH], folder[PATH], common[PATH]; /* common: that of all its work trees */
} repository;

static bool join(char out[PATH], const char *folder, const char *name)
{
    int n = name[0] == '/' ? snprintf(out, PATH, "%s", name)
                           : snprintf(out, PATH, "%s/%s", folder, name);
    return n > 0 && n < PATH;
}

static void cut_line(char *text)
{
    text[strcspn(text, "\r\n")] = 0;
}

/* ".git" is a folder, or a file that says where it is. Somebody else's, above a folder that many
 * may write into, is nothing that a report should follow. */
static bool find_folder(repository *r)
{
    struct stat about;
    char path[PATH], text[PATH];
    if (!join(path, r->top, ".git") || stat(path, &about) != 0 || about.st_uid != geteuid())
        return false;
    if (S_ISDIR(about.st_mode))
        return join(r->folder, r->top, ".git");
    if (!pki_small_file(path, text, sizeof text) || strncmp(text, "gitdir: ", 8) != 0)
        return false;
    cut_line(text);
    return join(r->folder, r->top, text + 8);
}

static bool find_repository(const char *folder, repository *r)
{
    char text[PATH];
    if (!realpath(folder, r->top))
        return false;
    for (int level = 0; !find_folder(r); level++) {
        char *slash = strrchr(r->top, '/');
        if (!slash || slash == r->top || level == LEVELS_MOST)
            return false;
        *slash = 0;
    }
    if (!pki_small_file_in(r->folder, "commondir", text, sizeof text))
        return join(r->common, r->folder, ".");
    cut_line(text);
    return join(r->common, r->folder, text);
}

/* ---- the commit ---- */

static bool parse_commit(const char *text, pki_revision *out)
{
    size_t n = strspn(text, "0123456789abcdef");
    if (n != 40 && n != 64)
        return false;
    snprintf(out->commit, sizeof out->commit, "%.*s", (int)n, text);
    return true;
}

/* Lines of "COMMIT NAME". */
static void find_packed(const repository *r, const char *name, pki_revision *out)
{
    char *text = malloc(PACKED_MOST);
    size_t length = strlen(name);
    if (text && pki_small_file_in(r->common, "packed-refs", text, PACKED_MOST))
        for (const char *line = text; line;) {
            const char *blank = line + strcspn(line, " \n"), *end = strchr(line, '\n');
            if (*blank == ' ' && strncmp(blank + 1, name, length) == 0 &&
                (blank[1 + length] == '\n' || blank[1 + length] == 0) && parse_commit(line, out))
                break;
            line = end ? end + 1 : NULL;
        }
    free(text);
}

static void read_commit(const repository *r, pki_revision *out)
{
    char text[PATH], commit[128];
    if (!pki_small_file_in(r->folder, "HEAD", text, sizeof text))
        return;
    cut_line(text);
    if (strncmp(text, "ref: ", 5) != 0) {
        parse_commit(text, out);
        return;
    }
    const char *name = text + 5 + strspn(text + 5, " ");
    bool branch = strncmp(name, "refs/heads/", 11) == 0;
    snprintf(out->branch, sizeof out->branch, "%.127s", branch ? name + 11 : name);
    if (strstr(name, "..") ||
        (pki_small_file_in(r->folder, name, commit, sizeof commit) && parse_commit(commit, out)) ||
        (pki_small_file_in(r->common, name, commit, sizeof commit) && parse_commit(commit, out)))
        return;
    find_packed(r, name, out);
}

void pki_revision_read(const char *folder, pki_revision *out)
{
    repository *r = calloc(1, sizeof *r);
    memset(out, 0, sizeof *out);
    if (r && find_repository(folder, r))
        read_commit(r, out);
    free(r);
}
