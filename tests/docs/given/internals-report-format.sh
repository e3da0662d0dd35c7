cc "$SOURCE/examples/steps.c" -o steps $(pkg-config --cflags --libs pk)
./steps 2>/dev/null
pk report --json steps.json >run.report.json
