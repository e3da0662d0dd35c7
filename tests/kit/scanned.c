/* scanned.c - what LeakSanitizer looks for pointers in as `pk` ends; part of pk under
 * AddressSanitizer, and of nothing elsewhere.
 *
 * It reads all of each writable segment, and so makes the kernel back 12 MB of tables that nobody
 * has touched: half of what a start of pk takes there, of which the tests make a thousand. A page
 * that was never touched has no pointer in it. So while it looks, segments end where such pages
 * begin. The sanitizer's own are left out: perfkit's blocks are not its roots. What is wrongly left
 * out makes it report more, never less; test_sanitized has both. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((no_sanitize("address"), no_sanitize("undefined")))
#define PAGE 4096u
#define PARTS 1000
#define THERE                                                                                      \
    (UINT64_C(3) << 62) /* in memory, or swapped out: Documentation/admin-guide/mm/pagemap */

typedef int visitor(struct dl_phdr_info *info, size_t size, void *of);
typedef struct visit {
    visitor *sees;
    void *of;
} visit;

static int (*all_modules)(visitor *sees, void *of);
static bool looks;
static ElfW(Phdr) parts[PARTS];
static int count;
static uintptr_t sanitizer; /* where it lies */
static uint64_t seen[512];  /* of pages, */
static uintptr_t first;     /* from this one on */

void __asan_init(void);
int __lsan_is_turned_off(void);
int PLAIN __lsan_is_turned_off(void)
{
    Dl_info its, ours; /* in a program of clang's they are one */
    if (dladdr((void *)(uintptr_t)__asan_init, &its) && dladdr(&looks, &ours) &&
        its.dli_fbase != ours.dli_fbase)
        sanitizer = (uintptr_t)its.dli_fbase;
    looks = true;
    return 0;
}

/* The world is stopped, by a thread that is none of the C library's: it takes the kernel's calls.
 */
static bool PLAIN there(long file, uintptr_t page)
{
    if (page < first || page - first >= 512) {
        memset(seen, 0xff, sizeof seen); /* of what cannot be read all is there */
        syscall(SYS_pread64, file, seen, sizeof seen, page * sizeof *seen);
        first = page;
    }
    return seen[page - first] & THERE;
}

static void PLAIN add_part(const ElfW(Phdr) * of, uintptr_t from, uintptr_t to)
{
    parts[count] = *of;
    parts[count].p_vaddr = from;
    parts[count++].p_memsz = to - from;
}

/* Without pages that were never touched; there is room for what is to be added behind it. */
static void PLAIN add_touched(const ElfW(Phdr) * of, uintptr_t at, long file, int room)
{
    uintptr_t from = of->p_vaddr, to = from + of->p_memsz;
    while (from < to) {
        uintptr_t end = from;
        while (end < to && (there(file, (at + end) / PAGE) || count >= PARTS - room))
            end = (end / PAGE + 1) * PAGE;
        if (end > from)
            add_part(of, from, end < to ? end : to);
        for (from = end; from < to && !there(file, (at + from) / PAGE);)
            from = (from / PAGE + 1) * PAGE;
    }
}

static int PLAIN shortened(struct dl_phdr_info *info, size_t size, void *of)
{
    const visit *v = of;
    struct dl_phdr_info less = *info;
    long file = looks ? syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY) : -1;
    if (file < 0)
        return v->sees(info, size, v->of);
    first = UINTPTR_MAX;
    count = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            add_part(part, part->p_vaddr, part->p_vaddr + part->p_memsz);
        else if (info->dlpi_addr != sanitizer)
            add_touched(part, info->dlpi_addr, file, info->dlpi_phnum + 1);
    }
    syscall(SYS_close, file);
    less.dlpi_phdr = parts;
    less.dlpi_phnum = (ElfW(Half))count;
    return v->sees(&less, size, v->of);
}

int PLAIN dl_iterate_phdr(visitor *sees, void *of)
{
    if (!all_modules)
        all_modules = (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))(
            uintptr_t)dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return all_modules(looks ? shortened : sees, looks ? &(visit){sees, of} : of);
}
