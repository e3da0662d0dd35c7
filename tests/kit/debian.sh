# debian.sh - how the tests build Debian's packages: neither optimised nor stripped nor compressed, since that is quicker.
# A part of install/run.sh. docs/run.py builds perfkit with the flags that come of it, too: what one of the two has
# compiled the other has from the compiler's cache, since both do it in perfkit/SOMETHING.

export DEB_BUILD_MAINT_OPTIONS=hardening=+all # as in package/debian/rules
export DEB_BUILD_OPTIONS='nocheck noopt nostrip noautodbgsym parallel=2'
export DEB_CFLAGS_APPEND=-g0 DEB_CXXFLAGS_APPEND=-g0 DPKG_DEB_COMPRESSOR_TYPE=none
