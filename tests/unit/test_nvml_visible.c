/* Which devices are the process's, by what CUDA_VISIBLE_DEVICES and launchers say. */
#include "backend/nvml/sampler.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fake/nvml.h"

static fake_nvml *fake;
static const pki_nvml *nvml;

static int set_up(void **state)
{
    static const char *const uuids[] = {"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"};
    (void)state;
    memset(fake, 0, sizeof *fake);
    fake->devices = 4;
    for (unsigned i = 0; i < 4; i++)
        fake->device[i].uuid = uuids[i];
    fake->device[6].uuid = "MIG-dd55";
    return nvml->init();
}

static int tear_down(void **state)
{
    (void)state;
    return nvml->shutdown();
}

/* The devices that are found, as "ordinal:device " each. */
static void expect(const pki_nvml_wish *wish, const char *wanted)
{
    pki_nvml_visible v;
    char text[200] = "";
    assert_int_equal(pki_nvml_find(nvml, wish, &v), PKI_NVML_OK);
    for (unsigned i = 0; i < v.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%u:%d ", v.devices[i].ordinal,
                 (int)((fake_device *)(void *)v.devices[i].handle - fake->device));
    assert_string_equal(text, wanted);
}

static void expect_list(const char *list, const char *wanted)
{
    expect(&(pki_nvml_wish){.list = list}, wanted);
}

static void all_devices(void **state)
{
    (void)state;
    expect_list(NULL, "0:0 1:1 2:2 3:3 ");
    fake->device[1].open_code = PKI_NVML_NO_PERMISSION; /* CUDA does not count it, either */
    expect_list(NULL, "0:0 1:2 2:3 ");
    expect_list("1", "0:2 ");
}

static void lists(void **state)
{
    (void)state;
    expect_list("2,0", "0:2 1:0 ");
    expect_list(" 3 , 1", "0:3 1:1 ");
    expect_list("0,9,1", "0:0 "); /* what comes behind something that is none does not count */
    expect_list("0,-1,1", "0:0 ");
    expect_list("-1", "");
    expect_list("", "");
    expect_list("NoDevFiles", "");
    expect_list("1x", "");
    expect_list("99999999999999999999", "");
}

static void uuids(void **state)
{
    (void)state;
    expect_list("GPU-bb33,GPU-aa11", "0:2 1:0 ");
    expect_list("GPU-c,0", "0:3 1:0 ");
    expect_list("GPU-a", ""); /* fits two */
    expect_list("MIG-dd55", "0:6 ");
    expect_list("MIG-dd", "");
}

static void models_that_differ(void **state)
{
    pki_nvml_visible v;
    (void)state;
    pki_nvml_find(nvml, &(pki_nvml_wish){.list = NULL}, &v);
    assert_false(v.doubtful);
    fake->device[2].name = "another one";
    pki_nvml_find(nvml, &(pki_nvml_wish){.list = NULL}, &v);
    assert_true(v.doubtful);
    pki_nvml_find(nvml, &(pki_nvml_wish){.order = "PCI_BUS_ID"}, &v);
    assert_false(v.doubtful);
    pki_nvml_find(nvml, &(pki_nvml_wish){.list = "GPU-bb33"}, &v);
    assert_false(v.doubtful);
}

static void ranks_of_one_node(void **state)
{
    (void)state;
    expect(&(pki_nvml_wish){.local_rank = 1, .local_size = 2}, "1:1 3:3 ");
    expect(&(pki_nvml_wish){.local_rank = 3, .local_size = 4}, "3:3 ");
    /* More ranks than devices, or a list of one's own: nobody else can be relied on. */
    expect(&(pki_nvml_wish){.local_rank = 5, .local_size = 8}, "0:0 1:1 2:2 3:3 ");
    expect(&(pki_nvml_wish){.list = "2,3", .local_rank = 1, .local_size = 2}, "0:2 1:3 ");
    fake->device[0].open_code = PKI_NVML_NO_PERMISSION;
    expect(&(pki_nvml_wish){.local_rank = 1, .local_size = 2}, "0:1 1:2 2:3 ");
}

#define visible(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        visible(all_devices),       visible(lists), visible(uuids), visible(models_that_differ),
        visible(ranks_of_one_node),
    };
    char reason[200] = "";
    if (argc != 2)
        return 2;
    setenv("PK_NVML_LIBRARY", argv[1], 1);
    nvml = pki_nvml_open(reason, sizeof reason);
    void *library = dlopen(argv[1], RTLD_NOW);
    fake = library ? dlsym(library, FAKE_NVML_SCRIPT) : NULL;
    if (!nvml || !fake) {
        print_message("%s\n", reason);
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
