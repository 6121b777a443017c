#!/usr/bin/env bash
# Everything there is to measure on a machine with an NVIDIA GPU: the kernels' tests,
# the tool, the benchmark, and the same algorithm in PyTorch where that is installed.
#
# usage: gpu.sh RESULTS [flags of "bench gpu"]
#
# It is part of what "make gpu-bundle" makes, and runs beside it: the machine needs an
# NVIDIA driver, neither Go nor a CUDA toolkit. It takes less than 8 minutes. Results
# go to the directory RESULTS, JSON and logs, and a table comes last. A stage that
# fails or hangs is reported and the rest still runs; the exit status is 1 then.
#
# PYTHON is the Python with PyTorch and NumPy (python3). WORDS, DIM, ATOMS and EPOCHS
# are the sizes of the benchmark (400000, 300, 3000, 20).
# shellcheck disable=SC2329 # stages call functions
set -euo pipefail

[ $# -ge 1 ] || { sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2; exit 2; }
bundle=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
results=$(cd "$1" && pwd)
shift
words=${WORDS:-400000} dim=${DIM:-300} atoms=${ATOMS:-3000} epochs=${EPOCHS:-20}
export OVERCOMPLETE_LIBCUDA=${OVERCOMPLETE_LIBCUDA:-libcuda.so.1}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
cd "$data"

failed=0
: >"$results/stages.txt"

# stage NAME SECONDS COMMAND… runs a command with a time limit. Its output goes to
# NAME.log. Exit status 3 means that something it can do without is missing.
stage() {
  local name=$1 limit=$2 start=$SECONDS status=0 word
  shift 2
  printf '=== %s\n' "$name"
  timeout --kill-after=5 "$limit" "$@" >"$results/$name.log" 2>&1 || status=$?
  case $status in
    0) word=passed ;;
    3) word=skipped ;;
    124 | 137) word="timed out" ;;
    *) word="failed ($status)" ;;
  esac
  case $word in passed | skipped) ;; *) failed=1 ;; esac
  [ "$word" = passed ] || { grep -A 3 -e '--- FAIL' || tail -n 20; } <"$results/$name.log"
  printf '%-8s %-12s %4d s\n' "$name" "$word" $((SECONDS - start)) | tee -a "$results/stages.txt"
}

device() {
  "$bundle/overcomplete" devices
  ! command -v nvidia-smi || nvidia-smi
}

# Tests that read the sources, or compile a driver, have nothing to do with the GPU.
tests() {
  "$bundle/kernels.test" -test.v -test.timeout=80s -test.skip='^(TestInstructionNames|TestShapes|TestDevicesExclusive)$'
}

tool() {
  "$bundle/bench" vectors --words 2000 --dim "$dim" small.npy
  seq 2000 >small.txt
  "$bundle/overcomplete" train small.npy --words small.txt -o model --device cuda -k "$atoms" --epochs 3
  "$bundle/overcomplete" encode model small.npy --words small.txt -o encoded --device cuda
}

benchmark() {
  "$bundle/bench" gpu --words "$words" --dim "$dim" --atoms "$atoms" --epochs "$epochs" --json "$results/bench.json" "$@"
}

peer() {
  "${PYTHON:-python3}" -c 'import numpy, torch' || exit 3
  "$bundle/bench" vectors --words "$words" --dim "$dim" vectors.npy
  "${PYTHON:-python3}" "$bundle/torch_rda.py" vectors.npy --atoms "$atoms" --epochs "$epochs" --json "$results/torch.json"
}

# timeout runs programs, not functions: each is one for a shell of its own.
export bundle results words dim atoms epochs
export -f device tests tool benchmark peer
rm -f "$results/bench.json" "$results/torch.json"
stage device 20 bash -euc device
stage tests 90 bash -euc tests
stage tool 30 bash -euc tool
stage bench 170 bash -euc 'benchmark "$@"' bench "$@"
stage torch 140 bash -euc peer

if [ -e "$results/bench.json" ]; then
  reports=("$results/bench.json")
  [ ! -e "$results/torch.json" ] || reports+=("$results/torch.json")
  "$bundle/bench" table "${reports[@]}" | tee "$results/table.txt"
fi
echo
cat "$results/stages.txt"
exit $failed
