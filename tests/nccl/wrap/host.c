/* host.c DOUBLE FOLDER - runs program.c's main from a module that it loads for itself alone, whose
 * NCCL is loaded with it: $WRAP_MODULE. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int (*run)(int, char **);
    void *module = dlopen(getenv("WRAP_MODULE"), RTLD_NOW | RTLD_LOCAL);
    void *address = module ? dlsym(module, "main") : NULL;
    memcpy(&run, &address, sizeof run);
    if (!address)
        return printf("%s\n", dlerror()), 1;
    return run(argc, argv);
}
