/* Asks for every backend, and prints what became of it. */
#include <stdio.h>

#include <pk/pk.h>

int main(void)
{
    static const char *const names[] = {"cuda", "cupti", "nvtx", "nccl", "nvml"};
    int status =
        pk_start(pk_options(.backends = "cuda,cupti,nvtx,nccl,nvml", .tuning = "nvtx_consume=1"));
    for (int i = 0; i < 5; i++) {
        pk_backend_info info = {.size = sizeof info};
        status |= pk_backend_status(names[i], &info);
        printf("%s: %s: %s\n", names[i], info.live ? "on" : "off", info.reason);
    }
    return status | pk_stop();
}
