/* tools/main.c - pk, the command for what happens after the run: all of it (launch.c). */
#include "command.h"

#include <pk/pk.h>

#include <stdio.h>
#include <string.h>

static const command commands[] = {
    {"run", command_run, "a program as it is, under perfkit: no line is changed"},
    {"report", command_report, "where a run spent its time, from its report or trace file"},
    {"job", command_job, "all ranks of a job as one: who is late, where, and what it costs"},
    {"query", command_query, "what runs did, asked in SQL: calls, kernels, steps of all ranks"},
    {"export", command_export, "what runs did, as tables: CSV, JSON lines or a SQLite database"},
    {"ab", command_ab, "two commands or builds in turn: same, slower, faster, cannot tell"},
    {"bench-ab", command_bench_ab, "two builds' benchmarks, run in turn: which became slower"},
    {"compare", command_compare, "which benchmarks became slower, from their files"},
    {"recover", command_recover, "the whole trace of a run that was killed"},
    {"merge", command_merge, "the traces of a job's ranks as one, on one time axis"},
    {"capture", command_capture, "the same steps of running processes, each as a trace"},
    {"top", command_top, "live view of processes: steps, regions, devices, communicators"},
    {"where", command_where, "what processes are in, running or killed, and who waits for whom"},
    {"machine", command_machine, "what this machine can do at most, measured once and kept"},
    {"status", command_status, "what perfkit finds on this machine: clock, limits, backends"},
};

#define COMMANDS (sizeof commands / sizeof *commands)

static int print_help(void)
{
    printf("usage: pk COMMAND [ARGUMENT ...]\n"
           "\n"
           "What happens after a run under perfkit.\n"
           "\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].help);
    printf("\n"
           "  --help, -h   this; `pk COMMAND --help` and `pk help COMMAND`: what a command takes\n"
           "  --version    which perfkit this is\n");
    return EXIT_OK;
}

static int print_version(void)
{
    printf("pk (perfkit) %s\n", pk_version());
    return EXIT_OK;
}

static int run_command(int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[0], commands[i].name) == 0)
            return commands[i].run(argc, argv);
    return complain("there is no command \"%s\" (pk --help lists them)", argv[0]);
}

/* pk help [COMMAND] */
static int run_help(int argc, char **argv)
{
    char help[] = "--help";
    if (argc > 2)
        return complain("help takes one command, and \"%s\" is a second", argv[2]);
    if (argc < 2 || strcmp(argv[1], help) == 0)
        return print_help();
    return run_command(2, (char *[]){argv[1], help, NULL});
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 2)
        return complain("no command is given (pk --help lists them)");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        status = print_help();
    else if (strcmp(argv[1], "--version") == 0)
        status = print_version();
    else if (strcmp(argv[1], "help") == 0)
        status = run_help(argc - 1, argv + 1);
    else if (argv[1][0] == '-')
        status = complain("pk has no option \"%s\" (pk --help)", argv[1]);
    else
        status = run_command(argc - 1, argv + 1);
    return command_end(status);
}
