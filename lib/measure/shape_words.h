/* lib/measure/shape_words.h - how a member of a shape is said: its type is the compiler's. For the
 * files that describe one; the names are theirs alone. */
#pragma once

#include "measure/shape.h"

#define TYPE(T, m)                                                                                 \
    _Generic(((T *)0)->m,                                                                          \
        char *: PKI_TEXT,                                                                          \
        uint64_t: PKI_UINT,                                                                        \
        uint32_t: PKI_U32,                                                                         \
        int32_t: PKI_I32,                                                                          \
        double: PKI_REAL,                                                                          \
        bool: PKI_BOOL)

#define AT(T, m) .offset = offsetof(T, m)
#define PLAIN_AS(name, T, m)                                                                       \
    {                                                                                              \
        .key = name, .type = TYPE(T, m), AT(T, m)                                                  \
    }
#define PLAIN(T, m) PLAIN_AS(#m, T, m)
/* Several in a row, up to 18. */
#define PICK_19TH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, it, ...) it
#define P1(T, m) PLAIN(T, m)
#define P2(T, m, ...) PLAIN(T, m), P1(T, __VA_ARGS__)
#define P3(T, m, ...) PLAIN(T, m), P2(T, __VA_ARGS__)
#define P4(T, m, ...) PLAIN(T, m), P3(T, __VA_ARGS__)
#define P5(T, m, ...) PLAIN(T, m), P4(T, __VA_ARGS__)
#define P6(T, m, ...) PLAIN(T, m), P5(T, __VA_ARGS__)
#define P7(T, m, ...) PLAIN(T, m), P6(T, __VA_ARGS__)
#define P8(T, m, ...) PLAIN(T, m), P7(T, __VA_ARGS__)
#define P9(T, m, ...) PLAIN(T, m), P8(T, __VA_ARGS__)
#define P10(T, m, ...) PLAIN(T, m), P9(T, __VA_ARGS__)
#define P11(T, m, ...) PLAIN(T, m), P10(T, __VA_ARGS__)
#define P12(T, m, ...) PLAIN(T, m), P11(T, __VA_ARGS__)
#define P13(T, m, ...) PLAIN(T, m), P12(T, __VA_ARGS__)
#define P14(T, m, ...) PLAIN(T, m), P13(T, __VA_ARGS__)
#define P15(T, m, ...) PLAIN(T, m), P14(T, __VA_ARGS__)
#define P16(T, m, ...) PLAIN(T, m), P15(T, __VA_ARGS__)
#define P17(T, m, ...) PLAIN(T, m), P16(T, __VA_ARGS__)
#define P18(T, m, ...) PLAIN(T, m), P17(T, __VA_ARGS__)
#define PLAINS(T, ...)                                                                             \
    PICK_19TH(__VA_ARGS__, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4,    \
              P3, P2, P1)                                                                          \
    (T, __VA_ARGS__)
#define HEX(T, m) .key = #m, .type = PKI_HEX, AT(T, m)
#define CHOICE(name, T, m, words) .key = name, .type = PKI_CHOICE, AT(T, m), .choice = &(words)
#define OBJECT(T, m, of) .key = #m, .type = PKI_OBJECT, AT(T, m), .shape = &(of)
#define TOP_OBJECT(T, m, of) OBJECT(T, m, of), .line = true
#define OPTIONAL(T, m, of) OBJECT(T, m, of), .optional = true
#define KINDS(T, n)                                                                                \
    .key = "kinds", .type = PKI_KEYED, AT(T, kinds), .keys = pki_kind_names, .count = (n)
#define ROWS(name, T, m, n, of)                                                                    \
    .key = name, .type = PKI_ROWS, AT(T, m), .count = offsetof(T, n), .shape = &(of)
#define TABLE(name, T, m, n, of)                                                                   \
    .key = name, .type = PKI_TABLE, AT(T, m), .count = offsetof(T, n), .shape = &(of)
#define NUMBERS(name, T, m, n) .key = name, .type = PKI_NUMBERS, AT(T, m), .count = offsetof(T, n)
#define SHAPE(T, list) sizeof(T), sizeof(list) / sizeof *(list), list
