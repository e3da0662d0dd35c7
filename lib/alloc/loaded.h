/* lib/alloc/loaded.h - a function of the C++ library, wherever that has come from. */
#pragma once

/* NULL: none is loaded, or it has no such function. It does not wait for the loader, as dlsym does:
 * that has a lock as long as a library's constructors run, which may wait for who asks. */
void *pki_loaded_function(const char *name);
