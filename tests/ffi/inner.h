/* inner.h - a C library with a region of its own, linked with libpk.so, which calls back into
 * whoever uses it. */
#ifndef TESTS_FFI_INNER_H
#define TESTS_FFI_INNER_H

#ifdef __cplusplus
extern "C" {
#endif

void inner_work(void (*back)(void));

/* A stream of the mock of CUDA's driver (tests/fake) that $PK_CUDA_LIBRARY names; NULL if it names
 * none. */
void *inner_stream(void);

#ifdef __cplusplus
}
#endif
#endif
