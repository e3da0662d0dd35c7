/* first_region.c - the smallest useful program: a session, a region, a trace and a report.
 *
 *     cc first_region.c $(pkg-config --cflags --libs pk) -o first_region && ./first_region
 */
#include <pk/pk.h>
#include <stdio.h>

static pk_region sum_up = PK_REGION_OF(PK_COMPUTE, "sum_up");

static double harmonic(int terms)
{
    PK_REGION_SCOPE(sum_up); /* to the end of the block, on every way out */
    double sum = 0;
    for (int i = 1; i <= terms; i++)
        sum += 1.0 / i;
    return sum;
}

int main(void)
{
    if (pk_start(pk_options(.trace_path = "first_region.json", .report_path = "-")) != PK_OK)
        fprintf(stderr, "perfkit: %s\n", pk_error_message()); /* it is off then, and harmless */
    double sum = 0;
    for (int i = 0; i < 100; i++)
        sum += harmonic(1000 * i);
    printf("%f\n", sum);
    pk_stop(); /* what it answers is not the program's success */
    return 0;
}
