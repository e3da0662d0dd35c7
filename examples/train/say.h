/* say.h - the one clear line on stderr that every failure of the trainer gets. */
#ifndef TRAIN_SAY_H
#define TRAIN_SAY_H

/* "pk-train: ..." */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

#endif
