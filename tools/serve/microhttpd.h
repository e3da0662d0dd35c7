/* tools/serve/microhttpd.h - libmicrohttpd, opened when there is something to serve: it brings
 * others along (nine on Debian 12), and each start of `pk` would wait for them.
 */
#pragma once

#include "complaint.h"

#include <microhttpd.h>

/* Its functions, less the MHD_ of their names. */
typedef struct microhttpd {
    __typeof__(MHD_start_daemon) *start_daemon;
    __typeof__(MHD_stop_daemon) *stop_daemon;
    __typeof__(MHD_get_daemon_info) *get_daemon_info;
    __typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
    __typeof__(MHD_add_response_header) *add_response_header;
    __typeof__(MHD_queue_response) *queue_response;
    __typeof__(MHD_destroy_response) *destroy_response;
} microhttpd;

/* False, and why, if it is not on this machine. */
bool microhttpd_open(microhttpd *m, complaint *why);
