/* lib/base/text.h - bytes that came from outside, and words that become settings */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- bytes that came from outside, made fit for a file ---- */

/* Length of the valid UTF-8 sequence at s (n bytes left), 0 if it is not one: overlong forms,
 * surrogates and values above U+10FFFF are not (RFC 3629). */
size_t pki_utf8_length(const char *s, size_t n);

/* The bytes s[0..n) as the inside of a JSON string: quotes, backslashes and control characters
 * escaped, each invalid byte replaced by U+FFFD, everything else as it is. Writes at most size - 1
 * bytes and a NUL, cutting between characters; returns the length written. size >= 6 * n + 1 never
 * cuts. */
size_t pki_json_escape(char *out, size_t size, const char *s, size_t n);

/* Replaces %r, %p, %h and %% in pattern. False if another % is in it (*bad is that letter) or if it
 * does not fit (*bad is 0). */
typedef struct pki_path_fields {
    int rank;
    int pid;
    const char *host;
} pki_path_fields;

bool pki_path_expand(char *out, size_t size, const char *pattern, const pki_path_fields *fields,
                     char *bad);

/* FNV-1a, 32 bits; another seed, another hash. */
uint32_t pki_hash(const char *s, size_t n, uint32_t seed);

bool pki_ends_with(const char *s, const char *end);

/* What follows the last slash; all of it if there is none. */
const char *pki_base_name(const char *path);

/* ---- the command line of this process, fit to be shown ---- */

/* With blanks between, quoted where needed, cut off where it is too long. What follows a word like
 * password, token or key, and what stands before an @ in an address, becomes "***": a report is
 * passed on, and a command line is not. No promise: who has secrets there turns it off. */
void pki_arguments_read(char *out, size_t size);

/* The same of arguments with a 0 behind each. */
void pki_arguments_show(const char *arguments, size_t length, char *out, size_t size);
