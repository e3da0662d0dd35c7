"""pk_goodput - what a training's wall time was good for, for Python (pk/goodput.h).

    import pk, pk_goodput

    with pk.session(goodput_path="run.goodput"):
        with pk_goodput.phase(pk_goodput.RESTORE):
            done = load_checkpoint()
        pk_goodput.training_at(done)                # so many steps are behind it; 0: a new training
        for batch in batches:
            ...                                     # a step; pk.step(samples)
            with pk_goodput.phase(pk_goodput.CHECKPOINT):
                size = save_checkpoint()
            pk_goodput.checkpoint_done(done, size)

Threads: any; there is one training per process, and phases nest across its threads.
"""

import contextlib
import ctypes

import pk_c

STARTUP, COMPILE, CHECKPOINT, RESTORE, EVALUATION = range(1, 6)

_U64 = ctypes.c_uint64

begin, end = (pk_c.function("pk_phase_" + verb, None, ctypes.c_int) for verb in ("begin", "end"))
checkpoint_done = pk_c.function("pk_checkpoint_done", None, _U64, _U64)  # steps behind it, and its bytes; 0: unknown
training_at = pk_c.function("pk_training_set_step", None, _U64)  # so many steps are behind the training


@contextlib.contextmanager
def phase(kind):
    """The training is in that phase; the one around it goes on at the end."""
    begin(kind)
    try:
        yield
    finally:
        end(kind)
