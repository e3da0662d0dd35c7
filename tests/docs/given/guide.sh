[ -z "$(command -v mpicc)" ] || mpicc "$SOURCE/tests/docs/given/solver.c" -o solver
[ -z "$(command -v mpicc)" ] || mpicc "$SOURCE/tests/docs/given/trainer.c" $(pkg-config --cflags --libs pk) -o trainer
