# Four ranks of a run, the third one slow, by perfkit's own formatter; and one rank's report.
for rank in 0 1 2 3; do "$BUILD/tests/tools/tools-run_trace" rank$rank.json $rank 4 60; done
cp rank0.json run.json
pk report --json rank0.json >report.json
