/* tools/job/library/way_out.h - where to go without memory. */
#pragma once

#include <setjmp.h>

/* Of this thread, until the next call. What had been allocated on the way is lost. */
void memory_way_out(jmp_buf *to);
