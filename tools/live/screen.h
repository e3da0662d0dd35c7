/* tools/live/screen.h - a terminal as a page that is drawn over and over, and its keys. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* False if standard output is no terminal: then nothing has happened. It is as it was before once
 * screen_close has been called, also after ^C and SIGTERM, which end the waiting. */
bool screen_open(void);
void screen_close(void);

/* As of now; 80 x 24 where it cannot be known. */
void screen_size(size_t *width, size_t *height);

/* The page, in place of the one before. */
void screen_draw(const char *page, size_t bytes);

/* Waits at most so many milliseconds. The key that was pressed; 0: none; SCREEN_RESIZED;
 * SCREEN_END: the terminal is gone, or the user wants to end. */
#define SCREEN_RESIZED (-1)
#define SCREEN_END (-2)
int screen_wait(int ms);
