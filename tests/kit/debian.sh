# debian.sh - how the tests build Debian's packages: neither stripped nor compressed, and of the build's own objects, which
# the compiler's cache has (as_built.py). Debian's flags for compilers are arm64's in ./dev, which optimises as a release;
# those for the linker are here. A part of install/run.sh: $source, $build.

export DEB_BUILD_OPTIONS='nocheck nostrip noautodbgsym parallel=2' DPKG_DEB_COMPRESSOR_TYPE=none
export DEB_CFLAGS_SET= DEB_CPPFLAGS_SET= PK_DH_OPTIONS=--builddirectory=build/check/deb
