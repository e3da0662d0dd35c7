/* stacks_work.h - see test_stacks.c */
#pragma once

#include <stdint.h>

#ifndef WORK
#define WORK(name) tables_##name
#endif

typedef double work_function(uint64_t rounds);

double WORK(outer)(uint64_t rounds);
extern work_function *const WORK(places)[3]; /* innermost first */
