mkdir job
"$BUILD/tests/tools/tools-job_files" job ranks=8 culprits=1 slow=0.08 per_host=4 regions=3 calls=50 > /dev/null
mkdir before
"$BUILD/tests/tools/tools-job_files" before ranks=8 seed=9 per_host=4 regions=3 calls=50 > /dev/null
