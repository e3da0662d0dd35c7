#!/bin/bash
# deb.sh OUT [OPTION...] - the Debian packages of this tree, in the folder OUT. The tree stays as it is: they are built in
# a copy, where package/debian is at its place. DEB_BUILD_OPTIONS as for any package: "noopt nostrip" is quickest.
# OPTION: meson's, beside those in debian/rules.

set -eu -o pipefail
[ $# -ge 1 ] || { echo "usage: deb.sh OUT [OPTION...]" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
cd "$1"
shift
export PK_MESON_OPTIONS=$*
rm -rf perfkit *.deb *.buildinfo *.changes
"$source/package/copy.sh" "$source" perfkit
if [ -e "$source/build/charts/package" ]; then # of pk report --html, see ./dev charts
    mkdir -p perfkit/build/charts
    cp -r "$source/build/charts/package" perfkit/build/charts
fi
cd perfkit
mv package/debian debian
dpkg-buildpackage -us -uc -b
cd ..
rm -rf perfkit
