cp "$SOURCE/tests/docs/given/solver.c" .
