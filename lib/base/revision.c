#include "base/revision.h"

#include <endian.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/small_file.h"

#define PATH 4096
#define LEVELS_MOST 32
#define PACKED_MOST ((size_t)1 << 20) /* bytes of packed-refs */
#define FILES_MOST 20000              /* of the index: 2 us each, */
#define COMPARE_NS 50000000u          /* but on a network's file system as much as a thousand */
#define INDEX_MOST ((size_t)64 << 20)
#define ENTRY 62 /* bytes of an entry of the index, in front of its name */

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

/* ---- what git knows of the files ---- */

static uint32_t number_at(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

/* 0: as git knows it, 1: another time, 2: another size, or gone. */
static int compare_file(const char *top, const char *entry, const char *name, size_t length)
{
    char path[PATH];
    struct stat about;
    int n = snprintf(path, sizeof path, "%s/%.*s", top, (int)length, name);
    uint32_t mode = number_at(entry + 24);
    if (n <= 0 || n >= PATH || (mode & 0170000) == 0160000) /* a submodule is a folder */
        return 0;
    if (lstat(path, &about) != 0 || (uint32_t)about.st_size != number_at(entry + 36))
        return 2;
    bool same = (uint32_t)about.st_mtim.tv_sec == number_at(entry + 8) &&
                (number_at(entry + 12) == 0 || /* some systems keep seconds alone */
                 (uint32_t)about.st_mtim.tv_nsec == number_at(entry + 12));
    return same ? 0 : 1;
}

static void compare_files(const char *top, const char *index, size_t size, pki_revision *out)
{
    static const char *const words[] = {"no", "perhaps", "yes"};
    size_t version = size > 12 ? number_at(index + 4) : 0,
           count = version ? number_at(index + 8) : 0;
    size_t at = 12;
    int worst = 0;
    if (version < 2 || version > 3 || memcmp(index, "DIRC", 4) != 0 || count > FILES_MOST)
        return;
    uint64_t until = pki_monotonic_ns() + COMPARE_NS;
    for (size_t i = 0; i < count && worst < 2; i++) {
        if (at + ENTRY + 2 >= size || (i % 64 == 63 && pki_monotonic_ns() > until))
            return;
        unsigned flags = (unsigned char)index[at + 60];
        size_t head = ENTRY + (version == 3 && (flags & 0x40) ? 2 : 0);
        size_t length = strnlen(index + at + head, size - at - head);
        if (at + head + length >= size)
            return;
        int found = compare_file(top, index + at, index + at + head, length);
        worst = PKI_MAX(worst, found);
        at += (head + length + 8) & ~(size_t)7;
    }
    snprintf(out->modified, sizeof out->modified, "%s", words[worst]);
}

static void read_modified(const repository *r, pki_revision *out)
{
    char path[PATH];
    struct stat about;
    if (!join(path, r->folder, "index"))
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    bool fits = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
                (size_t)about.st_size <= INDEX_MOST;
    size_t size = fits ? (size_t)about.st_size : 0;
    char *index = size ? malloc(size) : NULL;
    if (index && read(fd, index, size) == (ssize_t)size)
        compare_files(r->top, index, size, out);
    free(index);
    close(fd);
}

void pki_revision_read(const char *folder, bool files, pki_revision *out)
{
    repository *r = calloc(1, sizeof *r);
    memset(out, 0, sizeof *out);
    if (r && find_repository(folder, r)) {
        read_commit(r, out);
        if (out->commit[0] && files)
            read_modified(r, out);
    }
    free(r);
}
