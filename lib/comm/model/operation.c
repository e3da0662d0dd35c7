#include "comm/model/operation.h"

#include <string.h>

#include "base/compiler.h"

uint32_t pki_comm_type_bytes(uint32_t type)
{
    static const uint8_t bytes[] = {
#define TYPE_BYTES(code, value, n, name) [value] = (n),
        PK_COMM_TYPE_LIST(TYPE_BYTES)
#undef TYPE_BYTES
    };
    return type < PKI_COUNT_OF(bytes) ? bytes[type] : 1;
}

const char *pki_comm_type_name(uint32_t type)
{
    static const char *const names[] = {
#define TYPE_NAME(code, value, n, name) [value] = (name),
        PK_COMM_TYPE_LIST(TYPE_NAME)
#undef TYPE_NAME
    };
    return type < PKI_COUNT_OF(names) ? names[type] : "Byte";
}

const char *pki_comm_op_name(uint32_t op)
{
    static const char *const names[] = {
#define OP_NAME(code, value, name) [value] = (name),
        PK_COMM_OP_LIST(OP_NAME)
#undef OP_NAME
    };
    return op < PKI_COUNT_OF(names) ? names[op] : "other";
}

pk_comm_op pki_comm_op_named(const char *name)
{
#define OP_NAMED(code, value, text)                                                                \
    if (strcmp(name, text) == 0)                                                                   \
        return code;
    PK_COMM_OP_LIST(OP_NAMED)
#undef OP_NAMED
    return PK_COMM_OP_OTHER;
}

uint64_t pki_comm_elements_in(uint32_t op, uint64_t n, uint64_t ranks)
{
    bool all =
        op == PK_COMM_OP_REDUCE_SCATTER || op == PK_COMM_OP_ALL_TO_ALL || op == PK_COMM_OP_SCATTER;
    return op == PK_COMM_OP_RECV ? 0 : all ? n * ranks : n;
}

uint64_t pki_comm_elements_out(uint32_t op, uint64_t n, uint64_t ranks)
{
    bool all =
        op == PK_COMM_OP_ALL_GATHER || op == PK_COMM_OP_ALL_TO_ALL || op == PK_COMM_OP_GATHER;
    return op == PK_COMM_OP_SEND ? 0 : all ? n * ranks : n;
}

bool pki_operation_has_peer(uint32_t op)
{
    return op == PK_COMM_OP_BROADCAST || op == PK_COMM_OP_REDUCE || op == PK_COMM_OP_GATHER ||
           op == PK_COMM_OP_SCATTER || op == PK_COMM_OP_SEND || op == PK_COMM_OP_RECV ||
           op == PK_COMM_OP_SEND_RECV;
}
