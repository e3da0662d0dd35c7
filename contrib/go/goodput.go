package pk

// #include <pk/goodput.h>
import "C"

// Phase is what the training waits for (pk/goodput.h).
type Phase uint32

// The phases.
const (
	Startup    Phase = C.PK_PHASE_STARTUP
	Compile    Phase = C.PK_PHASE_COMPILE
	Checkpoint Phase = C.PK_PHASE_CHECKPOINT
	Restore    Phase = C.PK_PHASE_RESTORE
	Evaluation Phase = C.PK_PHASE_EVALUATION
)

// Begin says that from here on the training is in that phase: defer pk.Restore.Begin().End()
func (p Phase) Begin() Phase {
	if Started() {
		C.pk_phase_begin_on_(C.pk_phase(p))
	}
	return p
}

// End ends it; the phase around it, if there is one, goes on.
func (p Phase) End() {
	if Started() {
		C.pk_phase_end_on_(C.pk_phase(p))
	}
}

// CheckpointDone says that a checkpoint is complete that has so many steps behind it. bytes: its size; 0: unknown.
func CheckpointDone(step, bytes uint64) {
	if Started() {
		C.pk_checkpoint_done_on_(C.uint64_t(step), C.uint64_t(bytes))
	}
}

// TrainingAt says that the training has so many steps behind it, and that the step that runs is the next one.
func TrainingAt(step uint64) {
	if Started() {
		C.pk_training_set_step_on_(C.uint64_t(step))
	}
}
