cc "$SOURCE/examples/steps.c" -o steps $(pkg-config --cflags --libs pk)
./steps 2>/dev/null
pk report --json steps.json >run.report.json
cp run.report.json old.report.json
mkdir job
"$BUILD/tests/tools/tools-job_files" job ranks=8 culprits=1 slow=0.08 per_host=4 regions=3 calls=50 > /dev/null
