bench_sum --max-samples 20 --max-warmup 1ms --json bench.json
