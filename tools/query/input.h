/* tools/query/input.h - the files around a query: SQL, and databases. */
#pragma once

#include "complaint.h"

/* All of a file, to be freed; NULL, and why. */
char *query_read_text(const char *path, complaint *why);

/* Does it begin as SQLite's databases do? */
bool query_is_database(const char *path);
