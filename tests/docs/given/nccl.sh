cc "$SOURCE/examples/steps.c" -o train $(pkg-config --cflags --libs pk)
