#include "comm/plugin/codes.h"

#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"

typedef struct word {
    const char *text;
    int meaning; /* a pk_comm_op or a pk_comm_type */
} word;

static const word functions[] = {{"other", PK_OP_OTHER},
                                 {"AllReduce", PK_OP_ALL_REDUCE},
                                 {"Broadcast", PK_OP_BROADCAST},
                                 {"Reduce", PK_OP_REDUCE},
                                 {"AllGather", PK_OP_ALL_GATHER},
                                 {"ReduceScatter", PK_OP_REDUCE_SCATTER},
                                 {"AlltoAll", PK_OP_ALL_TO_ALL},
                                 {"Gather", PK_OP_GATHER},
                                 {"Scatter", PK_OP_SCATTER},
                                 {"Send", PK_OP_SEND},
                                 {"Recv", PK_OP_RECV},
                                 {"SendRecv", PK_OP_SEND_RECV},
                                 {"PutSignal", PK_OP_OTHER},
                                 {"Signal", PK_OP_OTHER},
                                 {"WaitSignal", PK_OP_OTHER}};

static const word elements[] = {{"ncclUint8", PK_TYPE_BYTE},
                                {"ncclInt8", PK_TYPE_INT8},
                                {"ncclInt32", PK_TYPE_INT32},
                                {"ncclUint32", PK_TYPE_UINT32},
                                {"ncclInt64", PK_TYPE_INT64},
                                {"ncclUint64", PK_TYPE_UINT64},
                                {"ncclFloat16", PK_TYPE_FLOAT16},
                                {"ncclFloat32", PK_TYPE_FLOAT32},
                                {"ncclFloat64", PK_TYPE_FLOAT64},
                                {"ncclBfloat16", PK_TYPE_BFLOAT16},
                                {"ncclFloat8e4m3", PK_TYPE_FLOAT8_E4M3},
                                {"ncclFloat8e5m2", PK_TYPE_FLOAT8_E5M2}};

static const word algorithms[] = {
    {"", 0},     {"TREE", 0},      {"RING", 0}, {"COLLNET_DIRECT", 0}, {"COLLNET_CHAIN", 0},
    {"NVLS", 0}, {"NVLS_TREE", 0}, {"PAT", 0}};

static const word protocols[] = {{"", 0}, {"LL", 0}, {"LL128", 0}, {"SIMPLE", 0}};

static const struct {
    const word *words;
    uint8_t count;
} lists[PKI_NCCL_CODE_KINDS] = {{functions, PKI_COUNT_OF(functions)},
                                {elements, PKI_COUNT_OF(elements)},
                                {algorithms, PKI_COUNT_OF(algorithms)},
                                {protocols, PKI_COUNT_OF(protocols)}};

uint64_t pki_nccl_seen[PKI_NCCL_SEEN];

_Static_assert(PKI_COUNT_OF(functions) < 32 && PKI_COUNT_OF(elements) < 32, "five bits");

uint8_t pki_nccl_look_up(pki_nccl_code_kind kind, const char *text)
{
    uint8_t code = 0;
    if (!text)
        return 0;
    for (uint8_t i = 0; i < lists[kind].count; i++)
        if (strcmp(lists[kind].words[i].text, text) == 0)
            code = i;
    uint64_t key = pki_nccl_code_key(kind, text);
    pki_store(pki_nccl_code_seen(key), key << 5 | code);
    return code;
}

void pki_nccl_codes_forget(void)
{
    for (int i = 0; i < PKI_NCCL_SEEN; i++)
        pki_store(&pki_nccl_seen[i], 0);
}

const char *pki_nccl_text(pki_nccl_code_kind kind, uint8_t code)
{
    return lists[kind].words[code < lists[kind].count ? code : 0].text;
}

pk_comm_op pki_nccl_op(uint8_t function)
{
    return (pk_comm_op)functions[function < PKI_COUNT_OF(functions) ? function : 0].meaning;
}

pk_comm_type pki_nccl_type(uint8_t element)
{
    return (pk_comm_type)elements[element < PKI_COUNT_OF(elements) ? element : 0].meaning;
}
