#!/bin/sh
# test_program.sh PK-TRAIN - the trainer as its user meets it: arguments, exit codes, a kill in the middle,
# and what perfkit says about it.
set -eu

program=$(realpath "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/pk-train-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
seq 20000 >text

fail()
{
    echo "$*"
    exit 1
}

# Small enough for a step to take about a millisecond. become_train & has the trainer's own process id.
become_train()
{
    exec ${MESON_EXE_WRAPPER:-} "$program" --dim 16 --heads 2 --layers 1 --seq 16 --batch 4 "$@"
}

train()
{
    (become_train "$@")
}

# refused ARGUMENT... : exit 2, one line on stderr, nothing on stdout.
refused()
{
    status=0
    train "$@" >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "$*: exit $status, expected 2"
    [ "$(wc -l <err)" -eq 1 ] || fail "$*: not one line: $(cat err)"
    [ ! -s out ] || fail "$*: says on stdout: $(cat out)"
}

arguments()
{
    : >empty
    refused --nonsense
    refused --steps many
    refused --heads 3
    refused no/such/file
    refused empty
    refused .
    refused --checkpoint no/such/folder/file text
    refused --trace no/such/folder/trace.json text
    train --help >out 2>err || fail "--help: exit $?"
    grep -q -e --slow-loader out || fail "--help does not tell of --slow-loader"
    [ ! -s err ] || fail "--help: $(cat err)"
}

progress()
{
    train --steps 5 --print-every 2 text >out || fail "training: exit $?"
    [ "$(grep -c '^step .* loss .* tokens/s$' out)" -eq 4 ] || fail "not steps 1, 2, 4, 5: $(cat out)"
    train --steps 5 --quiet text >out || fail "training: exit $?"
    [ ! -s out ] || fail "--quiet: $(cat out)"
    train --steps 2 >out || fail "training on the default text: exit $?"
}

# Whenever the kill comes: a run that goes on from what is there ends in the same state as one that never
# stopped.
kill_and_resume()
{
    train --steps 300 --quiet --checkpoint whole text
    become_train --steps 300 --quiet --checkpoint-every 10 --checkpoint parts text &
    while [ ! -e parts ] && kill -0 $! 2>/dev/null; do sleep 0.01; done
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    train --steps 300 --quiet --checkpoint parts --resume text
    cmp whole parts || fail "the resumed run has come to another state"
}

# The only checkpoint is that of the signal.
interrupt()
{
    become_train --steps 1000000000 --checkpoint-every 1000000000 --checkpoint state text >log &
    while ! grep -q '^step' log 2>/dev/null && kill -0 $! 2>/dev/null; do sleep 0.01; done
    kill -TERM $!
    wait $! || fail "SIGTERM: exit $?"
    train --steps 1 --checkpoint state --resume text >out || fail "no whole checkpoint after SIGTERM"
    grep -q '^going on after step' out || fail "no checkpoint after SIGTERM"
}

# 50 ms are so many steps' time that no other load of the machine hides them.
verdicts()
{
    train --steps 60 --quiet --slow-loader=50 --trace trace.json --report report text
    grep -q 'input-bound' report || fail "--slow-loader, and not input-bound: $(cat report)"
    for name in batch.wait forward attention 'block\[layer=0\]' loader.slow loader.queue ProfilerStep#59; do
        grep -q -e "\"$name\"" trace.json || fail "$name is not in the trace"
    done
}

# The step that is slow on purpose is in a capture, with the reason; whatever else is slow on a busy machine.
slow_step()
{
    (export PK_CAPTURE=slow=1.2 PK_CAPTURE_PATH=slow-%s.json PK_CAPTURES_PER_HOUR=1000
        train --steps 60 --slow-step 40 text >out) || fail "--slow-step: exit $?"
    grep -q '^on purpose: ' out || fail "--slow-step is not announced: $(cat out)"
    grep -l '"ProfilerStep#40"' slow-*.json >captures || fail "no capture of step 40: $(ls)"
    grep -q '"loader.stalled"' $(cat captures) || fail "the reason is not in $(cat captures)"
}

arguments
progress
kill_and_resume
interrupt
verdicts
slow_step
