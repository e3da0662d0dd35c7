#include "live/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static bool keys; /* standard input is a terminal, and set up */
static volatile sig_atomic_t resized, ended;

static void note_resize(int signal)
{
    (void)signal;
    resized = 1;
}

static void note_end(int signal)
{
    (void)signal;
    ended = 1;
}

static void put(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(STDOUT_FILENO, text, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            ended = 1;
            return;
        }
        text += wrote;
        n -= (size_t)wrote;
    }
}

static void catch_signals(void)
{
    struct sigaction resize = {.sa_handler = note_resize}, end = {.sa_handler = note_end};
    sigaction(SIGWINCH, &resize, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
}

bool screen_open(void)
{
    static const char begin[] = "\033[?1049h\033[?25l";
    if (!isatty(STDOUT_FILENO))
        return false;
    catch_signals();
    keys = tcgetattr(STDIN_FILENO, &before) == 0;
    if (keys) {
        struct termios raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* nobody would put the page back */
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    put(begin, sizeof begin - 1);
    return true;
}

void screen_close(void)
{
    static const char end[] = "\033[?25h\033[?1049l";
    put(end, sizeof end - 1);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

void screen_size(size_t *width, size_t *height)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    *width = known ? size.ws_col : 80;
    *height = known ? size.ws_row : 24;
}

/* The last line has no newline behind it: it would scroll the page. */
void screen_draw(const char *page, size_t bytes)
{
    static const char home[] = "\033[H", rest[] = "\033[J";
    while (bytes > 0 && page[bytes - 1] == '\n')
        bytes--;
    put(home, sizeof home - 1);
    put(page, bytes);
    put(rest, sizeof rest - 1);
}

int screen_wait(int ms)
{
    char key;
    struct pollfd in = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
    int ready = poll(&in, 1, ms);
    if (ended)
        return SCREEN_END;
    if (resized) {
        resized = 0;
        return SCREEN_RESIZED;
    }
    if (ready <= 0)
        return 0;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : SCREEN_END;
}
