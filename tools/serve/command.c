/* tools/serve/command.c - pk serve: files of metrics_path over HTTP. */
#include "command.h"

#include "base/compiler.h"
#include "command_line.h"
#include "serve/answer.h"
#include "serve/microhttpd.h"

#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 32u
#define SECONDS 10u /* that a connection may be idle */
#define HOST_BYTES 256

typedef struct wish {
    bool metrics;
    const char *listen;
    operands files;
} wish;

static const option all_options[] = {
    {"--metrics", NULL, "the files of metrics_path, as one page for Prometheus: /metrics",
     .at = offsetof(wish, metrics)},
    {"--listen", "ADDR:PORT",
     "where (default 127.0.0.1:9464, which this machine alone can reach); [::1]:PORT; port 0: any",
     OPTION_WORD, option_text, offsetof(wish, listen), .needs = "an address"},
};

static const option_table command_options = {
    .command = "serve",
    .usage = "--metrics [OPTION ...] PATH ...",
    .about = "Serves what running processes write for Prometheus, over HTTP, until it is ended\n"
             "(SIGINT, SIGTERM). PATH is a file of metrics_path, or a folder, of which those that\n"
             "end in .prom are taken. Files are read at each request; what comes and goes may.",
    .notes = "Exit status: 0; 2 if it cannot listen or an option is wrong.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "prom",
    .who = "",
    .operands = offsetof(wish, files),
};

/* ---- where ---- */

/* getaddrinfo takes what is left of a larger number. */
static bool is_port(const char *text)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && port <= UINT16_MAX;
}

static bool split(const char *listen, char host[HOST_BYTES], const char **port)
{
    const char *colon = strrchr(listen, ':'), *from = listen;
    size_t length = colon ? (size_t)(colon - listen) : 0;
    if (length > 2 && listen[0] == '[' && colon[-1] == ']') {
        from++;
        length -= 2;
    }
    if (!colon || length == 0 || length >= HOST_BYTES || !is_port(colon + 1))
        return false;
    memcpy(host, from, length);
    host[length] = '\0';
    *port = colon + 1;
    return true;
}

/* Addresses as numbers: whoever means a name may mean another machine tomorrow. */
static struct addrinfo *address_of(const char *listen)
{
    char host[HOST_BYTES];
    const char *port;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    if (!split(listen, host, &port) || getaddrinfo(host, port, &hints, &found) != 0)
        complain("--listen %s: no address and port such as 127.0.0.1:9464 or [::1]:9464", listen);
    return found;
}

/* ---- requests ---- */

static microhttpd http; /* bound before there is a request */

static enum MHD_Result reply(struct MHD_Connection *to, unsigned status, char *text, size_t length,
                             const char *type)
{
    struct MHD_Response *response =
        http.create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
        return MHD_NO;
    }
    http.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    enum MHD_Result queued = http.queue_response(to, status, response);
    http.destroy_response(response);
    return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *to, unsigned status, const char *why)
{
    char *text = strdup(why);
    return text ? reply(to, status, text, strlen(text), "text/plain") : MHD_NO;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    const wish *w = user;
    size_t length;
    (void)version, (void)upload, (void)upload_size, (void)state;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics\n");
    if (strcmp(url, "/metrics") != 0)
        return refuse(connection, MHD_HTTP_NOT_FOUND, "/metrics\n");
    char *text = serve_answer((const char *const *)w->files.all, w->files.count, &length);
    return reply(connection, MHD_HTTP_OK, text, length, "text/plain; version=0.0.4; charset=utf-8");
}

/* ---- the command ---- */

static struct MHD_Daemon *start(wish *w, const struct addrinfo *at)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD;
    flags |= at->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0;
    return http.start_daemon(flags, 0, NULL, NULL, handle, w, MHD_OPTION_SOCK_ADDR, at->ai_addr,
                             MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
                             MHD_OPTION_CONNECTION_TIMEOUT, SECONDS, MHD_OPTION_END);
}

static void print_address(struct MHD_Daemon *daemon, const char *listen)
{
    const union MHD_DaemonInfo *bound = http.get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("http://%.*s:%u/metrics\n", (int)(strrchr(listen, ':') - listen), listen,
           bound ? bound->port : 0u);
    fflush(stdout);
}

static int serve(wish *w, const struct addrinfo *at)
{
    sigset_t ends;
    int which;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* for its threads, too */
    struct MHD_Daemon *daemon = start(w, at);
    if (!daemon)
        return complain("--listen %s: cannot listen there; another program may have the port",
                        w->listen);
    print_address(daemon, w->listen);
    sigwait(&ends, &which);
    http.stop_daemon(daemon);
    return EXIT_OK;
}

int command_serve(int argc, char **argv)
{
    wish w = {.listen = "127.0.0.1:9464"};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.metrics)
        return complain("serve: what? --metrics is what there is");
    if (!w.files.count)
        return complain("serve needs files or folders (pk serve --help)");
    complaint why = {""};
    struct addrinfo *at = address_of(w.listen);
    if (!at)
        return EXIT_UNUSABLE;
    status = microhttpd_open(&http, &why) ? serve(&w, at) : complain("%s", why.text);
    freeaddrinfo(at);
    return status;
}
