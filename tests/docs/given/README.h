/* What README.md's program trains with. */
static void read_batch(void) {}
static void train(void) {}
