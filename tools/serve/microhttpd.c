#include "serve/microhttpd.h"

#include "base/compiler.h"
#include "base/dl.h"

#define FUNCTION(name) PKI_DL_FUNCTION(microhttpd, name, "MHD_" #name, false)

static const pki_dl_function functions[] = {
    FUNCTION(start_daemon),        FUNCTION(stop_daemon),
    FUNCTION(get_daemon_info),     FUNCTION(create_response_from_buffer),
    FUNCTION(add_response_header), FUNCTION(queue_response),
    FUNCTION(destroy_response),
};

bool microhttpd_open(microhttpd *m, complaint *why)
{
    static const char *const names[] = {"libmicrohttpd.so.12", NULL};
    char reason[512];
    void *library = pki_dl_open("PK_MICROHTTPD_LIBRARY", names, reason, sizeof reason);
    return (library &&
            pki_dl_bind(library, functions, PKI_COUNT_OF(functions), m, reason, sizeof reason)) ||
           complaint_set(why, "serve needs libmicrohttpd: %s", reason);
}
