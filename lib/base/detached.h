/* lib/base/detached.h - a command of the user's, run beside the program, which does not notice.
 *
 * A child sends its parent SIGCHLD as it ends, and whoever waits for any child is told of it: a
 * program that starts children of its own would find one that it does not know. So the command is a
 * grandchild. The process between is made by clone(2) with no signal at its end, in the program's
 * memory and with descriptors of its own, which it closes; it starts the command and ends at once,
 * so nothing is copied, nobody waits, and init (or the nearest subreaper) takes care of the
 * command.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Runs `/bin/sh -c command`: standard input is /dev/null, output and errors are the program's, all
 * other descriptors are closed, no signal is blocked. On a thread of ours. 0 or an errno;
 * the command's number in *pid. */
int pki_run_detached(const char *command, pid_t *pid);

/* Where the program itself is init or a subreaper, the command becomes its child as the process
 * between ends: to be called now and then, until it answers true. */
bool pki_detached_is_over(pid_t pid);
