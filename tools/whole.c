/* tools/whole.c - pk as one file, where launch.c has no library to load */
#include "command.h"

int main(int argc, char **argv)
{
    return pk_main(argc, argv);
}
