#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define FIRST_BYTES 64u

bool pki_array_fit(void *array_of, size_t *room, size_t wanted, size_t size)
{
    char *array;
    if (wanted <= *room)
        return true;
    size_t more = PKI_MAX(PKI_MAX(wanted, 2 * *room), FIRST_BYTES / size);
    if (more > SIZE_MAX / size)
        return false;
    memcpy(&array, array_of, sizeof array);
    array = realloc(array, more * size);
    if (!array)
        return false;
    memset(array + *room * size, 0, (more - *room) * size);
    memcpy(array_of, &array, sizeof array);
    *room = more;
    return true;
}
