/* Opens and closes plugin.so: with a session open, with a thread that has recorded and ends later,
 * and leaves the session to exit(). Nothing of perfkit may be gone by then: its collector runs, the
 * thread's destructor and the exit handler are still to come.
 *
 * usage: host PLUGIN TRACE
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef int start_function(const char *);
typedef void work_function(void);

static pthread_barrier_t closed;
static work_function *work;

static void *need(void *found)
{
    if (!found) {
        fprintf(stderr, "host: %s\n", dlerror());
        exit(1);
    }
    return found;
}

static void *record_then_outlive(void *unused)
{
    work();
    pthread_barrier_wait(&closed); /* recorded */
    pthread_barrier_wait(&closed); /* and the plug-in is closed */
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pthread_t thread;
    pthread_barrier_init(&closed, NULL, 2);

    void *plugin = need(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    work = (work_function *)need(dlsym(plugin, "plugin_work"));
    if (((start_function *)need(dlsym(plugin, "plugin_start")))(argv[2]) != 0)
        return 1;
    if (pthread_create(&thread, NULL, record_then_outlive, NULL) != 0)
        return 1;
    work();
    pthread_barrier_wait(&closed);
    dlclose(plugin);
    pthread_barrier_wait(&closed);
    pthread_join(thread, NULL);

    for (int i = 0; i < 10; i++) {
        plugin = need(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
        ((work_function *)need(dlsym(plugin, "plugin_work")))();
        dlclose(plugin);
    }
    return 0;
}
