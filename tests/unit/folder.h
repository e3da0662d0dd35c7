/* tests/unit/folder.h - a folder of its own for each test, and what is in it. */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char the_folder[] = "/tmp/pk-test-XXXXXX";

/* Made and entered. */
static inline int enter_folder(void **state)
{
    (void)state;
    strcpy(the_folder + sizeof the_folder - 7, "XXXXXX");
    return mkdtemp(the_folder) && chdir(the_folder) == 0 ? 0 : -1;
}

static inline int remove_entry(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

static inline int leave_folder(void **state)
{
    (void)state;
    return chdir("/") == 0 && nftw(the_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0
                                                                                            : -1;
}

/* Its files, "." and ".." not counted. */
static inline unsigned count_files(void)
{
    unsigned count = 0;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(folder);
    return count;
}

/* A write beyond it fails, and sends SIGXFSZ. */
static inline void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static inline int exists(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

/* The whole file, with a NUL behind it; to be freed. */
static inline char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    size_t room = 1 << 16, used = 0, got;
    char *text = malloc(room);
    while ((got = fread(text + used, 1, room - used - 1, file)) > 0) {
        used += got;
        if (used + 1 == room)
            text = realloc(text, room *= 2);
    }
    fclose(file);
    text[used] = 0;
    if (bytes)
        *bytes = used;
    return text;
}

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

#endif
