/* lib/base/standard.h - is descriptor 2 the standard error that the user means?
 *
 * A program may be started with 1 or 2 closed, or close them; the next file that it opens has that
 * number and is nobody's standard stream. dup2 to the number, as programs do that send stderr to a
 * file, looks the same; so what counts is whether the number was ever found closed.
 */
#pragma once

#include <stdbool.h>

/* Looks at 1 and 2, as is done when the library is loaded and at pk_start. */
void pki_standard_check(void);

/* False and EBADF if number (1 or 2) is closed, or is a file that came after it had been; after the
 * program has closed descriptors of ours, also if it is another file than at the last look. */
bool pki_standard_is_there(int number);
