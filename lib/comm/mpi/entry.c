/* lib/comm/mpi/entry.c - MPI's functions as the program calls them: on to what perfkit makes of the
 * call, or, where the MPI in this process is another one than this library is for, to MPI's own.
 *
 * Then nothing may look at an argument, nor even know its type: a communicator is a pointer in one
 * MPI and an int in the other, and a pointer that passes through an int has lost its upper half. So
 * mpi.h is not included here. Every parameter of these functions is an integer or a pointer, has a
 * register or a place of 8 bytes on the stack to itself, and goes on as it came.
 */
#include "comm/mpi/entry.h"

PKI_MPI_ENTRIES(ENTRY)
PKI_MPI_MESSAGES(MESSAGE)

/* MPI_Pcontrol(level, ...): what follows the level is a tool's business, and one word at most here.
 * That lies where a named parameter of these ABIs would. */
ENTRY(Pcontrol, 2)
