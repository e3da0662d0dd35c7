/* large_pages.c - what compilers and programs under AddressSanitizer need not wait for: memory.
 *
 * In a virtual machine the first touch of a page takes up to 20 us, and one of 2 MiB hardly longer
 * than one of 4 KiB. A compiler touches 5,000 for a file of 300 lines: a fifth of its time. And
 * LeakSanitizer reads all tables of a process as it ends, most of which nobody has touched.
 *
 * One file for ./dev, made three times: RUNS, the program in front of a compiler (CCACHE_PREFIX);
 * PRELOADED, what it lays in front of the C library; else an object of each program in asan. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGE ((uintptr_t)2 << 20)

#if defined(RUNS)

int main(int argc, char **argv)
{
    char preloaded[4096];
    snprintf(preloaded, sizeof preloaded, "%s.so", argv[0]);
    setenv("LD_PRELOAD", preloaded, 1);
    setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
    if (argc > 1)
        execvp(argv[1], argv + 1);
    return 127;
}

#elif defined(PRELOADED)

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    void *p = (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
    if (p != MAP_FAILED && (flags & MAP_ANONYMOUS) && bytes >= LARGE / 2)
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

#else

/* What a module's file does not fill. Before anything is touched there: where a small page lies
 * already, no large one can. And by a write, since a kernel may read what is empty from small
 * pages. */
static int in_large_pages(struct dl_phdr_info *module, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        uintptr_t at = module->dlpi_addr + part->p_vaddr;
        uintptr_t first = (at + part->p_filesz + LARGE - 1) & ~(LARGE - 1);
        uintptr_t end = (at + part->p_memsz) & ~(LARGE - 1);
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) && first < end &&
            madvise((void *)first, end - first, MADV_HUGEPAGE) == 0)
            madvise((void *)first, end - first, MADV_POPULATE_WRITE);
    }
    return 0;
}

static void at_start(void)
{
    dl_iterate_phdr(in_large_pages, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first_of_all)(void) = at_start;

/* A command gives its memory back by its end, and to look through it for leaks takes half of a
 * short one: PK_TEST_LEAKS asks for that. Parts of commands are looked at as programs of their own.
 */
int __lsan_is_turned_off(void);
__attribute__((weak)) int __lsan_is_turned_off(void)
{
    return strcmp(program_invocation_short_name, "pk") == 0 && !getenv("PK_TEST_LEAKS");
}

#endif
