// cuda_train.cu - training on a GPU, and where its time goes: forward, backward and optimizer on
// one stream, the next batch's copy on another one meanwhile, optionally the whole step as a
// captured graph.
//
//     cuda_train --steps 500 --trace train.json --report -
//     cuda_train --cupti 100-120 --trace train.json        kernels, too, in those steps
//     cuda_train --graph                                   the step as a graph, replayed
//
// A stack of blocks y = x + gelu(x W1 + b) W2 learns to tell apart 64 clouds of points, by AdamW.
// Sums are made in the same order each time: the checksum of the weights is the same with perfkit
// and without, with the graph and without. Without a GPU it says so in one line and exits 77.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <getopt.h>

#include <pk/pk.hpp>

#include "cuda_train.cuh"

#define CHECK(call) check((call), #call)

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

// ---- regions ----

static pk_region in_setup = PK_REGION("setup"), in_load = PK_REGION_OF(PK_DATA, "load");
static pk_region in_copy = PK_REGION_OF(PK_DATA, "copy"),
                 in_step = PK_REGION_OF(PK_COMPUTE, "replay");
static pk_region in_forward = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region in_backward = PK_REGION_OF(PK_COMPUTE, "backward");
static pk_region in_optimizer = PK_REGION_OF(PK_COMPUTE, "optimizer");
static pk_region in_wait = PK_REGION_OF(PK_WAIT, "wait"), in_loss = PK_REGION_OF(PK_WAIT, "loss");

// A phase of the step: of the thread that launches, and of the stream that works.
struct phase {
    phase(pk_region &region, cudaStream_t stream) : cpu(region), gpu(region, stream) {}
    pk::scope cpu;
    pk::gpu_scope gpu;
};

// ---- the trainer ----

struct layer {
    float *w1, *bias, *w2;
};

struct trainer {
    int samples;
    size_t weight_count = 0;
    float *weights, *gradients, *means, *variances;
    layer w[LAYERS], g[LAYERS];
    float *head, *head_gradient;
    float *inputs[2], *host_inputs[2]; // one is worked on while the other is filled
    int *labels[2], *host_labels[2];
    float *x[LAYERS + 1], *z[LAYERS], *h[LAYERS]; // x[0] is the input
    float *scores, *losses, *loss, *dx, *dh, *host_loss;
    int *step;
    cudaStream_t compute, copies;
    cudaEvent_t copied[2], used[2];
    cudaGraph_t graphs[2];
    cudaGraphExec_t replays[2];
};

// Cleared by the stream that uses it: the default stream, cudaMemset's, has no order with one that
// does not block.
static float *floats(const trainer &t, size_t n)
{
    void *memory;
    CHECK(cudaMalloc(&memory, n * sizeof(float)));
    CHECK(cudaMemsetAsync(memory, 0, n * sizeof(float), t.compute));
    return static_cast<float *>(memory);
}

template <typename T> static T *host(size_t n)
{
    void *memory;
    CHECK(cudaMallocHost(&memory, n * sizeof(T)));
    return static_cast<T *>(memory);
}

static unsigned blocks(size_t n)
{
    return (unsigned)((n + 255) / 256);
}

static void multiply(trainer &t, float *to, matrix a, matrix b, int m, int n, int k,
                     const float *add = nullptr)
{
    dim3 grid((unsigned)(n + TILE - 1) / TILE, (unsigned)(m + TILE - 1) / TILE),
        threads(SIDE, SIDE);
    matmul<<<grid, threads, 0, t.compute>>>(to, a, b, add, m, n, k);
}

// All weights lie in one piece, gradients in another of the same form.
static float *lay_out(layer *layers, float *at)
{
    for (int l = 0; l < LAYERS; l++) {
        layers[l] = {at, at + WIDTH * HIDDEN, at + WIDTH * HIDDEN + HIDDEN};
        at = layers[l].w2 + HIDDEN * WIDTH;
    }
    return at;
}

static void set_up_weights(trainer &t)
{
    t.weight_count = LAYERS * (size_t)(2 * WIDTH * HIDDEN + HIDDEN) + WIDTH * CLASSES;
    t.weights = floats(t, t.weight_count);
    t.gradients = floats(t, t.weight_count);
    t.means = floats(t, t.weight_count);
    t.variances = floats(t, t.weight_count);
    t.head = lay_out(t.w, t.weights);
    t.head_gradient = lay_out(t.g, t.gradients);
    fill<<<blocks(t.weight_count), 256, 0, t.compute>>>(t.weights, t.weight_count, 0.04f, 7);
}

static void set_up(trainer &t, int samples)
{
    pk::scope s(in_setup);
    size_t wide = (size_t)samples * WIDTH, hidden = (size_t)samples * HIDDEN;
    t.samples = samples;
    CHECK(cudaStreamCreateWithFlags(&t.compute, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t.copies, cudaStreamNonBlocking));
    set_up_weights(t);
    for (int b = 0; b < 2; b++) {
        t.inputs[b] = floats(t, wide);
        t.host_inputs[b] = host<float>(wide);
        t.labels[b] = reinterpret_cast<int *>(floats(t, (size_t)samples));
        t.host_labels[b] = host<int>((size_t)samples);
        CHECK(cudaEventCreateWithFlags(&t.copied[b], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&t.used[b], cudaEventDisableTiming));
    }
    for (int l = 0; l < LAYERS; l++) {
        t.x[l + 1] = floats(t, wide);
        t.z[l] = floats(t, hidden);
        t.h[l] = floats(t, hidden);
    }
    t.scores = floats(t, (size_t)samples * CLASSES);
    t.losses = floats(t, (size_t)samples);
    t.loss = floats(t, 1);
    t.host_loss = host<float>(1);
    t.step = reinterpret_cast<int *>(floats(t, 1));
    t.dx = floats(t, wide);
    t.dh = floats(t, hidden);
    CHECK(cudaDeviceSynchronize());
}

static void forward(trainer &t, int b)
{
    phase p(in_forward, t.compute);
    int n = t.samples * HIDDEN;
    t.x[0] = t.inputs[b];
    for (int l = 0; l < LAYERS; l++) {
        multiply(t, t.z[l], rows(t.x[l], WIDTH), rows(t.w[l].w1, HIDDEN), t.samples, HIDDEN, WIDTH);
        gelu<<<blocks((size_t)n), 256, 0, t.compute>>>(t.h[l], t.z[l], t.w[l].bias, n);
        multiply(t, t.x[l + 1], rows(t.h[l], HIDDEN), rows(t.w[l].w2, WIDTH), t.samples, WIDTH,
                 HIDDEN, t.x[l]);
    }
    multiply(t, t.scores, rows(t.x[LAYERS], WIDTH), rows(t.head, CLASSES), t.samples, CLASSES,
             WIDTH);
    softmax_loss<<<blocks((size_t)t.samples), 256, 0, t.compute>>>(t.scores, t.losses, t.labels[b],
                                                                   t.samples);
    finish_loss<<<1, 1, 0, t.compute>>>(t.loss, t.step, t.losses, t.samples);
}

static void backward(trainer &t)
{
    phase p(in_backward, t.compute);
    int n = t.samples * HIDDEN;
    multiply(t, t.head_gradient, transposed(t.x[LAYERS], WIDTH), rows(t.scores, CLASSES), WIDTH,
             CLASSES, t.samples);
    multiply(t, t.dx, rows(t.scores, CLASSES), transposed(t.head, CLASSES), t.samples, WIDTH,
             CLASSES);
    for (int l = LAYERS - 1; l >= 0; l--) {
        multiply(t, t.g[l].w2, transposed(t.h[l], HIDDEN), rows(t.dx, WIDTH), HIDDEN, WIDTH,
                 t.samples);
        multiply(t, t.dh, rows(t.dx, WIDTH), transposed(t.w[l].w2, WIDTH), t.samples, HIDDEN,
                 WIDTH);
        gelu_backward<<<blocks((size_t)n), 256, 0, t.compute>>>(t.dh, t.z[l], t.w[l].bias, n);
        column_sums<<<blocks(HIDDEN), 256, 0, t.compute>>>(t.g[l].bias, t.dh, t.samples, HIDDEN);
        multiply(t, t.g[l].w1, transposed(t.x[l], WIDTH), rows(t.dh, HIDDEN), WIDTH, HIDDEN,
                 t.samples);
        multiply(t, t.dx, rows(t.dh, HIDDEN), transposed(t.w[l].w1, HIDDEN), t.samples, WIDTH,
                 HIDDEN, t.dx);
    }
}

static void optimize(trainer &t)
{
    phase p(in_optimizer, t.compute);
    adamw<<<blocks(t.weight_count), 256, 0, t.compute>>>(t.weights, t.means, t.variances,
                                                         t.gradients, t.step, t.weight_count);
}

static void train_on(trainer &t, int b)
{
    forward(t, b);
    backward(t);
    optimize(t);
}

// The step as a graph, one for each input.
static void capture(trainer &t)
{
    pk::scope s(in_setup);
    for (int b = 0; b < 2; b++) {
        CHECK(cudaStreamBeginCapture(t.compute, cudaStreamCaptureModeThreadLocal));
        train_on(t, b);
        CHECK(cudaStreamEndCapture(t.compute, &t.graphs[b]));
        CHECK(cudaGraphInstantiateWithFlags(&t.replays[b], t.graphs[b], 0));
    }
}

static void replay(trainer &t, int b)
{
    pk::scope s(in_step);
    pk_gpu_graph_launching(t.replays[b], t.graphs[b],
                           t.compute); // its spans, however fast replays follow
    CHECK(cudaGraphLaunch(t.replays[b], t.compute));
}

// The batch of that step into half b, once what was in there has been copied and used.
static void load(trainer &t, int step, int b)
{
    pk::scope s(in_load);
    uint64_t random = 0x9E3779B97F4A7C15u * (uint64_t)(step + 1);
    {
        pk::scope w(in_wait);
        CHECK(cudaEventSynchronize(t.copied[b]));
    }
    for (int i = 0; i < t.samples; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int label = t.host_labels[b][i] = (int)(random >> 40) % CLASSES;
        for (int j = 0; j < WIDTH; j++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            float centre = (label * 31 + j * 17) % 64 < 32 ? 0.3f : -0.3f;
            t.host_inputs[b][(size_t)i * WIDTH + j] =
                centre + (float)(random >> 40) / 8388608.0f - 1;
        }
    }
    CHECK(cudaStreamWaitEvent(t.copies, t.used[b], 0));
    phase p(in_copy, t.copies); // behind the wait: a span is all that lies between its two points
    CHECK(cudaMemcpyAsync(t.inputs[b], t.host_inputs[b], (size_t)t.samples * WIDTH * sizeof(float),
                          cudaMemcpyHostToDevice, t.copies));
    CHECK(cudaMemcpyAsync(t.labels[b], t.host_labels[b], (size_t)t.samples * sizeof(int),
                          cudaMemcpyHostToDevice, t.copies));
    CHECK(cudaEventRecord(t.copied[b], t.copies));
}

static float read_loss(trainer &t)
{
    pk::scope s(in_loss);
    CHECK(cudaMemcpyAsync(t.host_loss, t.loss, sizeof(float), cudaMemcpyDeviceToHost, t.compute));
    CHECK(cudaStreamSynchronize(t.compute));
    return *t.host_loss;
}

// Ends of the steps, in ms. The load that waits for the copy, which waits for the step before,
// keeps the thread at most two steps ahead of the device: what lies between two ends is the
// device's time.
static std::vector<double> train(trainer &t, int steps, bool graph)
{
    std::vector<double> ends;
    load(t, 0, 0);
    for (int i = 0; i < steps; i++) {
        int b = i % 2;
        if (i + 1 < steps)
            load(t, i + 1, 1 - b);
        CHECK(cudaStreamWaitEvent(t.compute, t.copied[b], 0));
        if (graph)
            replay(t, b);
        else
            train_on(t, b);
        CHECK(cudaEventRecord(t.used[b], t.compute));
        if (i % 100 == 99)
            read_loss(t);
        pk_step((uint64_t)t.samples);
        auto now = std::chrono::steady_clock::now().time_since_epoch();
        ends.push_back(std::chrono::duration<double, std::milli>(now).count());
    }
    CHECK(cudaDeviceSynchronize());
    return ends;
}

static uint64_t checksum(const trainer &t)
{
    std::vector<unsigned char> bytes(t.weight_count * sizeof(float));
    uint64_t sum = 14695981039346656037u;
    CHECK(cudaMemcpy(bytes.data(), t.weights, bytes.size(), cudaMemcpyDeviceToHost));
    for (unsigned char byte : bytes)
        sum = (sum ^ byte) * 1099511628211u;
    return sum;
}

// ---- the program ----

struct arguments {
    int steps = 300, samples = 256, first = 0, last = -1; // the window of CUPTI
    bool graph = false, off = false;
    const char *trace = nullptr, *report = nullptr;
};

static int usage()
{
    std::fputs(
        "cuda_train [--steps N] [--batch N] [--graph] [--cupti A-B] [--off] [--trace FILE] [--report FILE]\n"
        "  --graph      the step as a captured graph\n"
        "  --cupti A-B  CUPTI in these steps: each kernel, tied to the region that launched it\n"
        "  --off        without perfkit\n",
        stderr);
    return 2;
}

static bool read_window(arguments &a, const char *text)
{
    if (std::sscanf(text, "%d-%d", &a.first, &a.last) != 2 || a.first < 0 || a.last < a.first)
        return false;
    return setenv("PK_CUPTI_STEPS", text, 1) == 0;
}

static bool read_arguments(arguments &a, int argc, char **argv)
{
    static const option known[] = {{"steps", 1, nullptr, 's'},  {"batch", 1, nullptr, 'b'},
                                   {"graph", 0, nullptr, 'g'},  {"cupti", 1, nullptr, 'c'},
                                   {"off", 0, nullptr, 'o'},    {"trace", 1, nullptr, 't'},
                                   {"report", 1, nullptr, 'r'}, {nullptr, 0, nullptr, 0}};
    for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (c) {
        case 's':
            a.steps = std::atoi(optarg);
            break;
        case 'b':
            a.samples = std::atoi(optarg);
            break;
        case 'g':
            a.graph = true;
            break;
        case 'o':
            a.off = true;
            break;
        case 't':
            a.trace = optarg;
            break;
        case 'r':
            a.report = optarg;
            break;
        case 'c':
            if (!read_window(a, optarg))
                return false;
            break;
        default:
            return false;
        }
    }
    return optind == argc && a.steps > 0 && a.samples > 0 && a.samples <= 65536;
}

// Median length of the steps within the window or outside it, without the first ones, and without
// those beside the window's ends, where CUPTI is being turned on and off.
static double median_step(const arguments &a, const std::vector<double> &ends, bool inside)
{
    std::vector<double> lengths;
    int from = inside ? a.first + 2 : std::min(20, a.steps / 10),
        to = inside ? a.last - 1 : a.steps;
    for (int i = std::max(from, 1); i < std::min(to, a.steps); i++)
        if (inside || i < a.first - 2 || i > a.last + 4)
            lengths.push_back(ends[(size_t)i] - ends[(size_t)i - 1]);
    if (lengths.empty())
        return 0;
    std::nth_element(lengths.begin(), lengths.begin() + (long)lengths.size() / 2, lengths.end());
    return lengths[lengths.size() / 2];
}

static int run(const arguments &a)
{
    trainer t;
    set_up(t, a.samples);
    if (a.graph)
        capture(t);
    std::vector<double> ends = train(t, a.steps, a.graph);
    float loss = read_loss(t);
    std::printf(
        "steps=%d batch=%d step_ms=%.4f window_ms=%.4f total_ms=%.1f loss=%.5f checksum=%016llx\n",
        a.steps, a.samples, median_step(a, ends, false), median_step(a, ends, true),
        ends.back() - ends.front(), loss, (unsigned long long)checksum(t));
    return std::isfinite(loss) ? 0 : 1;
}

int main(int argc, char **argv)
{
    arguments a;
    int devices = 0;
    if (!read_arguments(a, argc, argv))
        return usage();
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) {
        std::printf("cuda_train: skipped: no GPU: %s\n",
                    error != cudaSuccess ? cudaGetErrorString(error) : "there is no device");
        return 77;
    }
    if (a.off)
        return run(a);
    pk::options options;
    options.trace_path = a.trace;
    options.report_path = a.report;
    pk::session session(options);
    if (!session) {
        std::fprintf(stderr, "cuda_train: %s\n", pk_error_message());
        return 1;
    }
    return run(a);
}
