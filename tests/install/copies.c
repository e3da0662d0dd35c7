/* A program with a static perfkit opens two libraries that bring their own: one of the three may
 * record.
 *
 * usage: copies REPORT, with ./libfirst.so and ./libsecond.so here
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#define ROUNDS 50

typedef struct library {
    int (*start)(char *why, size_t size);
    int (*stop)(void);
    unsigned long long (*others)(void);
} library;

static char why[320];

static void expect(int fits, const char *what)
{
    if (fits)
        return;
    fprintf(stderr, "copies: %s (the last words were \"%s\")\n", what, why);
    exit(1);
}
#define EXPECT(what) expect((what), #what)

static void *find(void *object, const char *name)
{
    void *found = object ? dlsym(object, name) : NULL;
    if (!found) {
        fprintf(stderr, "copies: %s\n", dlerror());
        exit(1);
    }
    return found;
}

static library of(void *object)
{
    library l;
    *(void **)&l.start = find(object, "copy_start");
    *(void **)&l.stop = find(object, "copy_stop");
    *(void **)&l.others = find(object, "copy_others");
    return l;
}

static int start(library l)
{
    return l.start(why, sizeof why);
}

static void one_after_the_other(library a, library b)
{
    EXPECT(start(a) == PK_OK);
    EXPECT(start(b) == PK_EBUSY && strstr(why, "./libfirst.so") && strstr(why, pk_version()));
    EXPECT(pk_start(NULL) == PK_EBUSY && strstr(pk_error_message(), "./libfirst.so"));
    EXPECT(start(a) == PK_EBUSY && !strstr(why, "another copy"));
    EXPECT(a.others() == 2 && b.stop() == PK_EOFF);
    EXPECT(a.stop() == PK_OK && a.others() == 2);
    EXPECT(start(b) == PK_OK);
    EXPECT(b.others() == 0 && start(a) == PK_EBUSY && strstr(why, "./libsecond.so"));
    EXPECT(b.stop() == PK_OK);
}

/* A start that fails leaves room for others. */
static void after_a_failure(library a)
{
    EXPECT(pk_start(pk_options(.backends = "none", .trace_path = "no/such/folder/x.json")) ==
               PK_EIO ||
           !strstr(pk_error_message(), "another copy"));
    EXPECT(start(a) == PK_OK);
    EXPECT(a.stop() == PK_OK);
}

/* A child is another process. */
static void in_a_child(library a, library b)
{
    int status = 1;
    EXPECT(start(a) == PK_OK);
    pid_t child = fork();
    if (child == 0)
        _exit(start(b) == PK_OK && b.stop() == PK_OK ? 0 : 1);
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    EXPECT(start(b) == PK_EBUSY);
    EXPECT(a.stop() == PK_OK);
}

/* So is a namespace, to its libraries. */
static void in_a_namespace(library a)
{
    library c = of(dlmopen(LM_ID_NEWLM, "./libsecond.so", RTLD_NOW));
    EXPECT(start(a) == PK_OK && start(c) == PK_OK);
    EXPECT(a.others() == 0 && c.stop() == PK_OK && a.stop() == PK_OK);
}

static pthread_barrier_t together;

typedef struct starter {
    library l;
    int started[ROUNDS];
} starter;

static void *start_often(void *arg)
{
    starter *s = arg;
    char unheard[320];
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&together);
        s->started[i] = s->l.start(unheard, sizeof unheard) == PK_OK;
        pthread_barrier_wait(&together);
        if (s->started[i])
            s->l.stop();
    }
    return NULL;
}

static void at_once(library a, library b)
{
    starter one = {.l = a}, two = {.l = b};
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    EXPECT(pthread_create(&thread, NULL, start_often, &two) == 0);
    start_often(&one);
    pthread_join(thread, NULL);
    for (int i = 0; i < ROUNDS; i++)
        EXPECT(one.started[i] + two.started[i] == 1);
}

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user;
    if (level == PK_LOG_WARNING)
        snprintf(why, sizeof why, "%s", message);
}

static void told_in_log_and_report(library a, const char *report)
{
    EXPECT(pk_start(pk_options(.backends = "none", .report_path = report, .log = hear)) == PK_OK);
    EXPECT(start(a) == PK_EBUSY && strstr(why, "in the program"));
    EXPECT(pk_stop() == PK_OK);
    EXPECT(strstr(why, "refused, 1 times") != NULL);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    library a = of(dlopen("./libfirst.so", RTLD_NOW | RTLD_LOCAL));
    library b = of(dlopen("./libsecond.so", RTLD_NOW | RTLD_LOCAL));
    one_after_the_other(a, b);
    after_a_failure(a);
    in_a_child(a, b);
    in_a_namespace(a);
    at_once(a, b);
    told_in_log_and_report(a, argv[1]);
    return 0;
}
