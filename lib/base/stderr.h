/* lib/base/stderr.h - writing to stderr and other streams, where the user has asked for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* All of it. False and errno: EBADF if 2 is not the program's stderr (base/standard.h). A reader
 * that has gone away is an error like others: the SIGPIPE that would end the program is kept from
 * it. */
bool pki_write_stderr(const char *text, size_t n);

/* All of it, in as many pieces as it takes. False and errno. */
bool pki_write_all(int fd, const char *text, size_t n);
