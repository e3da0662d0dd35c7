/* ab_program.c - a scripted program for `pk bench-ab`: writes a file of benchmarks with made-up
 * times, and notes that it ran.
 *
 * AB_LOG: where it notes its name and arguments; AB_TIMES: "old=100,new=103", by the name of the
 * file; AB_DO: what goes wrong.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *name;

static bool is_wrong(const char *what)
{
    const char *wish = getenv("AB_DO");
    return wish && strcmp(wish, what) == 0;
}

/* Which launch of this name it is, from 0. */
static int note(int argc, char **argv)
{
    char line[4096];
    int launch = 0;
    FILE *log = fopen(getenv("AB_LOG"), "a+");
    if (!log)
        exit(3);
    rewind(log);
    while (fgets(line, sizeof line, log))
        launch += strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ';
    fseek(log, 0, SEEK_END);
    fputs(name, log);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--json", 6) != 0)
            fprintf(log, " %s", argv[i]);
    fputs(" \n", log);
    fclose(log);
    return launch;
}

static void go_wrong(void)
{
    if (is_wrong("fail")) {
        fputs("the first line\nit would not\n", stderr);
        exit(1);
    }
    if (is_wrong("kill"))
        abort();
    if (is_wrong("hang"))
        sleep(100);
}

/* Launches differ by 0.1 %, and the slower half of the samples by far more, which a lower quartile
 * does not see. */
static double base_time(int launch)
{
    const char *at = strstr(getenv("AB_TIMES"), name);
    double time = at ? strtod(at + strlen(name) + 1, NULL) : 0;
    return time * (1 + 0.001 * ((launch * 7 + (name[0] == 'n') * 3) % 5 - 2));
}

static void write_ours(FILE *file, double base, int launch)
{
    fprintf(
        file,
        "{\"context\":{\"date\":\"2026-11-20T14:00:00+00:00\",\"executable\":\"%s\",\"perfkit\":{"
        "\"format\":\"perfkit bench\",\"schema\":1,\"fingerprint\":\"0123456789abcdef\","
        "\"configuration\":{\"seed\":1,\"interleaved\":true,\"precision\":0.5,\"clock\":\"wall\"}}},"
        "\"benchmarks\":[{\"name\":\"f\",\"run_type\":\"iteration\",\"real_time\":%.9g,\"cpu_time\":1,"
        "\"time_unit\":\"ns\",\"perfkit\":{\"launch\":\"%032x\",\"clock\":\"wall\",\"samples\":[",
        name, base, launch);
    for (int i = 0; i < 10; i++)
        fprintf(file, "%s%.9g", i ? "," : "", base * (i < 5 ? 1 : 2 + launch % 3));
    fputs("]}}]}\n", file);
}

static void write_googles(FILE *file, double base)
{
    fprintf(
        file,
        "{\"context\":{},\"benchmarks\":[{\"name\":\"f\",\"run_type\":\"iteration\",\"real_time\":"
        "%.9g,\"cpu_time\":1,\"time_unit\":\"ns\"}]}\n",
        base);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *path = NULL;
    bool ours = false;
    name = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        ours |= strncmp(argv[i], "--json=", 7) == 0;
        if (strncmp(argv[i], "--json=", 7) == 0 || strncmp(argv[i], "--benchmark_out=", 16) == 0)
            path = strchr(argv[i], '=') + 1;
    }
    int launch = note(argc, argv);
    go_wrong();
    FILE *file = path && !is_wrong("silent") ? fopen(path, "w") : NULL;
    if (!file)
        return 0;
    if (is_wrong("nonsense"))
        fputs("nonsense", file);
    else if (ours)
        write_ours(file, base_time(launch), launch);
    else
        write_googles(file, base_time(launch));
    return fclose(file) != 0;
}
