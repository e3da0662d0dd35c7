/* lib/stats/kinds.h - what a name is of, and its distribution. */
#pragma once

/* 0 .. 5: a region of that pk_kind. */
#define PKI_KIND_COUNTER 100u
#define PKI_KIND_INTERNAL 101u
