/* test_support.h - what the trainer's tests share: cmocka, a directory to write in, and text. */
#ifndef TRAIN_TEST_SUPPORT_H
#define TRAIN_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A directory of its own, removed with what is in it. As cmocka's setup and teardown of a test. */
int directory_make(void **state);
int directory_remove(void **state);

/* A path in it. The string lives as long as the directory. */
char *path_in(void **state, const char *name);

/* So many bytes of which each window is different; returns the path. */
char *text_make(void **state, const char *name, size_t bytes);

/* From here on, complaints go to a file; lines_end gives back stderr and returns how many there
 * were. */
void lines_begin(void **state);
size_t lines_end(void **state);

#endif
