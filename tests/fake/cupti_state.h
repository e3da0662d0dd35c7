/* tests/fake/cupti_state.h - what the mock's files share. */
#ifndef TESTS_FAKE_CUPTI_STATE_H
#define TESTS_FAKE_CUPTI_STATE_H

#include "fake_cupti.h"

#define FAKE_IDS 1024
#define FAKE_STACK 64

typedef struct fake_state {
    CUpti_CallbackFunc callback;
    void *user;
    bool called[3][FAKE_IDS], silent[FAKE_IDS], driver_calls[FAKE_IDS];
    CUpti_BuffersCallbackRequestFunc requested;
    CUpti_BuffersCallbackCompleteFunc completed;
    CUpti_TimestampCallbackFunc clock;
    unsigned flushes_then; /* when a kind was last disabled */
    bool several;          /* it is one of them */
    bool theirs;           /* another tool has registered its buffers, and goes by its kinds */
    bool no_unfinished;    /* no records of questions about what is not done */
} fake_state;

/* Asked for on one thread, read on others. */
#define fake_set(place, value) __atomic_store_n(&(place), (value), __ATOMIC_SEQ_CST)
#define fake_get(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)

extern fake_cupti_table fake;
extern fake_state fake_inside;
extern pthread_mutex_t fake_lock;
extern _Thread_local uint64_t fake_stack[FAKE_STACK];
extern _Thread_local unsigned fake_depth;

void fake_note(const char *what, long number);
bool fake_noted(const char *what);
void fake_misused(const char *how);
uint64_t fake_now(void);

void fake_write(const void *record);

/* cupti_several.c */
extern _Thread_local bool fake_as_one;
CUptiResult fake_subscribe_one(CUpti_SubscriberHandle *out, CUpti_CallbackFunc callback, void *user,
                               const void *params, bool *handled);
bool fake_unsubscribe_other(CUpti_SubscriberHandle subscriber);
bool fake_other_wants(CUpti_ActivityKind kind);
void fake_tell_other(const CUpti_Activity *record, size_t bytes);
void fake_several_reset(void);

/* Room in this thread's buffer for a record that is known when the device is done: its kind is
 * there, its times are 0. Until it is complete the buffer is not given back, but by force. */
typedef struct fake_room {
    int buffer;    /* -1: there was none */
    unsigned turn; /* of the buffer: it may have been forced out since */
    size_t at;
} fake_room;

CUptiResult fake_register_other(CUpti_BuffersCallbackRequestFunc requested,
                                CUpti_BuffersCallbackCompleteFunc completed);

fake_room fake_reserve(const void *record);
void fake_fill(fake_room room, const void *record);
void fake_complete(void);
void fake_give_back(void);
uint32_t fake_play(const fake_call *call);
void fake_finish(void);
void fake_finish_some(size_t oldest);
uint32_t fake_correlate(void);
void fake_forget_device(void);
bool fake_is_on(CUpti_ActivityKind kind);
void fake_put_on_device(const void *record, size_t size);

/* cupti.c */
void fake_tell_memory(const fake_call *call, uint32_t correlation);
void fake_forget_memory(void);

#endif
