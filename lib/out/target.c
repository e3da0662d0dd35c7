#include "out/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef enum kind { FREE, FOLDER, LINK, DESCRIPTOR, NOTHING, DEVICE, PIPE, SOCKET } kind;

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Where it leads; "" if that cannot be read. */
static void read_link(const char *path, char *target, size_t size)
{
    ssize_t n = readlink(path, target, size - 1);
    target[n > 0 ? n : 0] = '\0';
}

/* What a link in /proc leads to is open in a process, and seldom a file: /proc/self/fd/1, and
 * /dev/stdout, which leads there. */
static kind kind_of_link(const char *path, const char *target)
{
    bool open = begins_with(path, "/proc/") || begins_with(path, "/dev/fd/") ||
                begins_with(target, "/proc/");
    return open ? DESCRIPTOR : LINK;
}

static kind kind_of(const char *path, char *target, size_t size)
{
    struct stat there;
    target[0] = '\0';
    if (lstat(path, &there) != 0 || S_ISREG(there.st_mode))
        return FREE;
    if (S_ISDIR(there.st_mode))
        return FOLDER;
    if (S_ISLNK(there.st_mode)) {
        read_link(path, target, size);
        return kind_of_link(path, target);
    }
    if (S_ISCHR(there.st_mode) && there.st_rdev == makedev(1, 3))
        return NOTHING;
    return S_ISFIFO(there.st_mode) ? PIPE : S_ISSOCK(there.st_mode) ? SOCKET : DEVICE;
}

bool pki_target_is_free(const char *path)
{
    static const int errors[] = {[FOLDER] = EISDIR, [LINK] = ELOOP, [DESCRIPTOR] = ELOOP};
    char target[2];
    int before = errno;
    kind what = kind_of(path, target, sizeof target);
    errno = before;
    if (what == FREE)
        return true;
    errno = what <= DESCRIPTOR ? errors[what] : EEXIST;
    return false;
}

static const char *name_of(kind what)
{
    static const char *const names[] = {
        [FOLDER] = "a directory",
        [LINK] = "a symbolic link",
        [DESCRIPTOR] = "a link to what a process has open",
        [NOTHING] = "the null device",
        [DEVICE] = "a device",
        [PIPE] = "a named pipe",
        [SOCKET] = "a socket",
    };
    return names[what];
}

static void describe(pki_target_text *words, kind what, const char *target,
                     const pki_target_hints *hints)
{
    const char *instead = what == NOTHING ? hints->nothing : NULL;
    bool streams = what == DESCRIPTOR || what == DEVICE || what == PIPE || what == SOCKET;
    if (what == LINK)
        snprintf(words->text, sizeof words->text,
                 "is a symbolic link (to %.120s): name the file itself", target);
    else if (instead)
        snprintf(words->text, sizeof words->text, "is %s: %s", name_of(what), instead);
    else
        snprintf(words->text, sizeof words->text, "is %s: name a file%s%s%s", name_of(what),
                 what == FOLDER ? " in it" : "", streams && hints->stream ? ", or " : "",
                 streams && hints->stream ? hints->stream : "");
}

pki_target_text pki_target_why(const char *path, int error, const pki_target_hints *hints)
{
    static const pki_target_hints none = {NULL, NULL};
    pki_target_text words;
    char target[128];
    int before = errno;
    kind what = kind_of(path, target, sizeof target);
    if (what == FREE)
        snprintf(words.text, sizeof words.text, "%s", strerror(error));
    else
        describe(&words, what, target, hints ? hints : &none);
    errno = before;
    return words;
}
