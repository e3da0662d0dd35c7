// The table of lib/comm/mpi/entry.h against MPI's own header: each function has as many parameters
// as it says, and each of them is what passes through a register unseen. What is wrong does not
// compile.
#include <mpi.h>

#include <type_traits>

#include "comm/mpi/entry_time.h"

template <class T> struct is_word {
    static constexpr bool value =
        sizeof(T) <= 8 && (std::is_integral<T>::value || std::is_pointer<T>::value);
};

template <class... Parameters> struct words;

template <> struct words<> {
    static constexpr int count = 0;
    static constexpr bool all = true;
};

template <class First, class... Rest> struct words<First, Rest...> {
    static constexpr int count = 1 + words<Rest...>::count;
    static constexpr bool all = is_word<First>::value && words<Rest...>::all;
};

template <class... Parameters> words<Parameters...> words_of(int (*)(Parameters...));

#define HOLDS(NAME, N)                                                                             \
    static_assert(decltype(words_of(&PMPI_##NAME))::count == (N),                                  \
                  "the number of parameters of MPI_" #NAME);                                       \
    static_assert(decltype(words_of(&PMPI_##NAME))::all, "a parameter of MPI_" #NAME " is no word");

PKI_MPI_ENTRIES(HOLDS)
PKI_MPI_MESSAGES(HOLDS)
PKI_MPI_TIMED(HOLDS)
PKI_MPI_TIMED_FILES(HOLDS)
#if MPI_VERSION >= 4
PKI_MPI_ENTRIES_4(HOLDS)
PKI_MPI_TIMED_4(HOLDS)
#endif
