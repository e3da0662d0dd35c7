// nccl_allreduce.cu - all-reduces over all GPUs of this machine, from small to large, and the table
// that nccl-tests prints. Linked with libpk_nccl, so each collective is in the trace and the
// report, too.
//
//     nccl_allreduce --trace nccl.json --report -
//     nccl_allreduce --begin 1024 --end 268435456 --factor 4 --iterations 50 --gpus 2
//
// One process, one thread, a communicator for each GPU (ncclCommInitAll). The loop's self times are
// those of the wall over all iterations; the report's are those of each operation on its stream.
// Without a GPU it says so in one line and exits 77.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <getopt.h>
#include <nccl.h>

#include <pk/pk.hpp>

#define CHECK(call) check((call), #call)

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

static void check(ncclResult_t result, const char *what)
{
    if (result != ncclSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, ncclGetErrorString(result));
        std::exit(1);
    }
}

struct options {
    std::size_t begin = 1024, end = std::size_t{256} << 20, factor = 4;
    int iterations = 20, warm_up = 5, gpus = 0;
    const char *trace = nullptr, *report = nullptr;
};

struct rank {
    cudaStream_t stream;
    float *send, *receive;
};

static pk_region in_warm_up = PK_REGION_OF(PK_COMM, "warm-up"),
                 in_loop = PK_REGION_OF(PK_COMM, "loop");
static pk_region in_wait = PK_REGION_OF(PK_WAIT, "wait");

static __global__ void fill(float *values, std::size_t count, float value)
{
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x)
        values[i] = value;
}

static std::vector<rank> make_ranks(int gpus, std::size_t bytes)
{
    std::vector<rank> ranks(gpus);
    for (int i = 0; i < gpus; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaStreamCreateWithFlags(&ranks[i].stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&ranks[i].send, bytes));
        CHECK(cudaMalloc(&ranks[i].receive, bytes));
        fill<<<256, 256, 0, ranks[i].stream>>>(ranks[i].send, bytes / sizeof(float), float(i + 1));
        CHECK(cudaGetLastError());
    }
    return ranks;
}

static void wait_for(const std::vector<rank> &ranks)
{
    pk::scope waiting(in_wait);
    for (std::size_t i = 0; i < ranks.size(); i++) {
        CHECK(cudaSetDevice(int(i)));
        CHECK(cudaStreamSynchronize(ranks[i].stream));
    }
}

static void all_reduce(const std::vector<rank> &ranks, const std::vector<ncclComm_t> &comms,
                       std::size_t count)
{
    CHECK(ncclGroupStart());
    for (std::size_t i = 0; i < ranks.size(); i++)
        CHECK(ncclAllReduce(ranks[i].send, ranks[i].receive, count, ncclFloat, ncclSum, comms[i],
                            ranks[i].stream));
    CHECK(ncclGroupEnd());
}

static double seconds_of(const options &o, const std::vector<rank> &ranks,
                         const std::vector<ncclComm_t> &comms, std::size_t count)
{
    {
        pk::scope scope(in_warm_up);
        for (int i = 0; i < o.warm_up; i++)
            all_reduce(ranks, comms, count);
        wait_for(ranks);
    }
    pk::scope scope(in_loop);
    auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < o.iterations; i++)
        all_reduce(ranks, comms, count);
    wait_for(ranks);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() /
           o.iterations;
}

// Sums of 1, 2, ..., n, on every GPU, in the first and the last element.
static int count_wrong(const std::vector<rank> &ranks, std::size_t count)
{
    float wanted = float(ranks.size() * (ranks.size() + 1) / 2);
    int wrong = 0;
    for (std::size_t i = 0; i < ranks.size(); i++)
        for (std::size_t at : {std::size_t{0}, count - 1}) {
            float found = 0;
            CHECK(cudaSetDevice(int(i)));
            CHECK(cudaMemcpy(&found, ranks[i].receive + at, sizeof found, cudaMemcpyDeviceToHost));
            wrong += found != wanted;
        }
    return wrong;
}

static int sweep(const options &o, const std::vector<rank> &ranks,
                 const std::vector<ncclComm_t> &comms)
{
    int wrong = 0;
    double n = double(ranks.size());
    std::printf("# %zu GPUs, %d iterations, %d to warm up\n", ranks.size(), o.iterations,
                o.warm_up);
    std::printf("#%11s %12s %8s %6s %10s %8s %8s %6s\n", "size", "count", "type", "redop", "time",
                "algbw", "busbw", "wrong");
    std::printf("#%11s %12s %8s %6s %10s %8s %8s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
                "(GB/s)");
    for (std::size_t bytes = o.begin; bytes <= o.end; bytes *= o.factor) {
        std::size_t count = bytes / sizeof(float);
        double seconds = seconds_of(o, ranks, comms, count);
        double algbw = double(bytes) / seconds / 1e9;
        int errors = count_wrong(ranks, count);
        std::printf("%12zu %12zu %8s %6s %10.2f %8.2f %8.2f %6d\n", bytes, count, "float", "sum",
                    seconds * 1e6, algbw, algbw * 2 * (n - 1) / n, errors);
        wrong += errors;
        pk_step(o.iterations);
    }
    return wrong;
}

static std::size_t number(const char *text, std::size_t least)
{
    char *end;
    unsigned long long n = std::strtoull(text, &end, 10);
    if (*end || n < least) {
        std::fprintf(stderr, "nccl_allreduce: %s is no number of at least %zu\n", text, least);
        std::exit(2);
    }
    return std::size_t(n);
}

static options read_options(int argc, char **argv)
{
    static const option known[] = {
        {"begin", 1, nullptr, 'b'},      {"end", 1, nullptr, 'e'},     {"factor", 1, nullptr, 'f'},
        {"iterations", 1, nullptr, 'n'}, {"warm-up", 1, nullptr, 'w'}, {"gpus", 1, nullptr, 'g'},
        {"trace", 1, nullptr, 't'},      {"report", 1, nullptr, 'r'},  {nullptr, 0, nullptr, 0}};
    options o;
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;)
        switch (c) {
        case 'b':
            o.begin = number(optarg, sizeof(float));
            break;
        case 'e':
            o.end = number(optarg, sizeof(float));
            break;
        case 'f':
            o.factor = number(optarg, 2);
            break;
        case 'n':
            o.iterations = int(number(optarg, 1));
            break;
        case 'w':
            o.warm_up = int(number(optarg, 0));
            break;
        case 'g':
            o.gpus = int(number(optarg, 1));
            break;
        case 't':
            o.trace = optarg;
            break;
        case 'r':
            o.report = optarg;
            break;
        default:
            std::exit(2);
        }
    return o;
}

int main(int argc, char **argv)
{
    options o = read_options(argc, argv);
    int there = 0;
    cudaError_t error = cudaGetDeviceCount(&there);
    if (error != cudaSuccess || there == 0) {
        std::printf("skipped: no GPU: %s\n",
                    error == cudaSuccess ? "none is there" : cudaGetErrorString(error));
        return 77;
    }
    int gpus = o.gpus && o.gpus < there ? o.gpus : there;
    pk::options wanted;
    wanted.trace_path = o.trace;
    wanted.report_path = o.report;
    if ((o.trace || o.report) && pk_start(&wanted) != PK_OK) {
        std::fprintf(stderr, "pk_start: %s\n", pk_error_message());
        return 1;
    }
    std::vector<rank> ranks = make_ranks(gpus, o.end);
    std::vector<ncclComm_t> comms(gpus);
    CHECK(ncclCommInitAll(comms.data(), gpus, nullptr));
    int wrong = sweep(o, ranks, comms);
    for (ncclComm_t comm : comms)
        CHECK(ncclCommDestroy(comm));
    pk_stop();
    return wrong != 0;
}
