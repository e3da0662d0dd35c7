#!/bin/bash
# installed.sh BUILD PREFIX TO - what is built in BUILD, installed: TO becomes the tree that lies in PREFIX then. It is
# installed once for all tests that ask, and anew when something of it has changed. TO has links to the same files: what
# one has no use for may be removed, nothing be written into.

set -eu
build=$1 prefix=$2 to=$3
source=$(cd "$(dirname "$0")/../.." && pwd)
tree=$build/tests/installed

changed()
{
    [ ! -e "$tree.made" ] || [ -n "$(find "$build"/{bindings,contrib,include,lib,package,tools,meson-private/install.dat} \
        "$source"/{LICENSE,bindings,contrib,docs,include,lib,package} -newer "$tree.made" -print -quit 2>/dev/null)" ]
}

mkdir -p "$build/tests"
exec 9>"$tree.lock"
flock 9
if changed; then
    rm -rf "$tree" "$tree.made"
    touch "$tree.new"
    DESTDIR=$tree meson install -C "$build" --no-rebuild --quiet >&2 9>&-
    mv "$tree.new" "$tree.made"
fi
if ! cp -al "$tree$prefix" "$to" 2>/dev/null; then # another file system
    rm -rf "$to"
    cp -a "$tree$prefix" "$to"
fi
