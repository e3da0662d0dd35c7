/* tools/live/top.c - pk top: a live view of processes. */
#include "live/top.h"

#include <stdlib.h>
#include <time.h>

#include "command.h"
#include "command_line.h"
#include "live/screen.h"

typedef struct wish {
    bool once, json;
    uint32_t seconds;
    operands targets;
} wish;

static const option all_options[] = {
    {"--once", NULL, "one page of what happens within --seconds, and end",
     .at = offsetof(wish, once)},
    {"--json", NULL, "a JSON document a line in place of a page", .at = offsetof(wish, json)},
    {"--seconds", "N", "look every N seconds (default {})", OPTION_WORD, option_number,
     offsetof(wish, seconds), .least = 1, .most = 3600, .shown = 1},
};

static const option_table command_options = {
    .command = "top",
    .usage = "TARGET... [--once] [--json] [--seconds N]",
    .about =
        "A live view of processes, updated every second: steps per second and how long they take,\n"
        "where the time goes by kind and by region, devices, communicators, the ranks side by side,\n"
        "and what has changed since the last update. TARGET is a pid, an arena or a folder of\n"
        "arenas. The processes need not cooperate, and are neither stopped nor touched.\n"
        "Keys: q quit, s another order of regions, p pause, h help.",
    .notes = "Exit status: 0; 2 if a TARGET cannot be read.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "arena",
    .who = "top: ",
    .operands = offsetof(wish, targets),
};

#define PLAIN_WIDTH 140

static void show_plain(const top *t, bool json)
{
    if (json)
        top_json(t, stdout);
    else
        top_text(t, &(top_page){.to = stdout, .width = PLAIN_WIDTH});
    fflush(stdout);
}

/* False without memory. */
static bool draw(const top *t, bool paused, bool help)
{
    char *text = NULL;
    size_t bytes = 0;
    top_page page = {.styled = getenv("NO_COLOR") == NULL, .paused = paused, .help = help};
    screen_size(&page.width, &page.height);
    page.to = open_memstream(&text, &bytes);
    if (!page.to)
        return false;
    top_text(t, &page);
    fclose(page.to);
    screen_draw(text, bytes);
    free(text);
    return true;
}

static uint64_t now_ms(void)
{
    return pki_monotonic_ns() / 1000000;
}

/* On a terminal, until the user has had enough. False without memory. */
static bool watch(top *t, uint32_t seconds)
{
    bool paused = false, help = false, sound = true;
    uint64_t next = now_ms();
    for (int key = 0; sound && key != SCREEN_END && key != 'q';) {
        if (now_ms() >= next) {
            sound = paused || top_update(t);
            next = now_ms() + seconds * UINT64_C(1000);
        }
        sound = sound && draw(t, paused, help);
        key = screen_wait((int)(next > now_ms() ? next - now_ms() : 0));
        paused ^= key == 'p' || key == ' ';
        help ^= key == 'h' || key == '?';
        t->order = key == 's' ? (t->order + 1) % TOP_ORDERS : t->order;
    }
    return sound;
}

/* Into a pipe or a file: a page, or a line, after each look but the first, which only begins. */
static bool print(top *t, const wish *w)
{
    do {
        struct timespec pause = {w->seconds, 0};
        nanosleep(&pause, NULL);
        if (!top_update(t))
            return false;
        show_plain(t, w->json);
    } while (!w->once && !ferror(stdout));
    return true;
}

static bool run(top *t, const wish *w)
{
    if (!top_update(t))
        return false;
    if (w->once || w->json || !screen_open())
        return print(t, w);
    bool sound = watch(t, w->seconds);
    screen_close();
    return sound;
}

int command_top(int argc, char **argv)
{
    wish w = {.seconds = 1};
    targets of;
    top t = {0};
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.targets.count)
        return complain("top needs a TARGET (pk top --help)");
    if (!targets_open(&of, w.targets.all, w.targets.count, &why))
        status = complain("top: %s", why.text);
    else if (!top_open(&t, &of) || !run(&t, &w))
        status = complain("top: no memory");
    else
        status = EXIT_OK;
    top_close(&t);
    targets_close(&of);
    return status;
}
