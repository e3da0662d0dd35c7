[ -z "$(command -v mpicc)" ] || mpicc "$SOURCE/tests/docs/given/solver.c" -o solver
