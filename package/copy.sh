#!/bin/bash
# copy.sh SOURCE TO - the files of a tree, without what was built in it. By their names, not as ".": that folder may
# change meanwhile, where meson is configuring, and tar would give up.

set -eu -o pipefail
shopt -s dotglob extglob
mkdir -p "$2"
to=$(cd "$2" && pwd)
cd "$1"
tar -c -- !(build*|.git|subprojects) | tar -C "$to" -x
