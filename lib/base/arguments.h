/* lib/base/arguments.h - the command line of this process, fit to be shown. */
#pragma once

#include <stddef.h>

/* With blanks between, quoted where needed, cut off where it is too long. What follows a word like
 * password, token or key, and what stands before an @ in an address, becomes "***": a report is
 * passed on, and a command line is not. No promise: who has secrets there turns it off. */
void pki_arguments_read(char *out, size_t size);

/* The same of arguments with a 0 behind each. */
void pki_arguments_show(const char *arguments, size_t length, char *out, size_t size);
