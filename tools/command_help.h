/* tools/command_help.h - what a table of options says, for people and for programs. Of
 * command_line.c. */
#pragma once

#include "command_line.h"

/* EXIT_OK. */
int options_print(const option_table *table);

/* One JSON object: command, usage, about, notes (texts), options (name, value, kind, help), files.
 */
int options_print_json(const option_table *table);
