#!/usr/bin/env bash
# Everything there is to measure on a machine with an NVIDIA GPU: the kernels' tests,
# the benchmark in its parts, the tool, and the same algorithm in PyTorch where that is
# installed.
#
# usage: gpu.sh RESULTS [flags of "bench gpu"]
#
# It is part of what "make gpu-bundle" makes, and runs beside it: the machine needs an
# NVIDIA driver, neither Go nor a CUDA toolkit. Results go to the directory RESULTS, JSON and
# logs, and a table comes last. Each stage is a process of its own with a time limit; after the
# kernels' tests, which tell what the rest is worth, comes the most valuable first. One that
# fails or hangs is reported, what it had measured is kept, and the rest still runs; the exit
# status is 1 then.
#
# STAGES names those to run, such as "tests train": the others' results are kept. Without it,
# what RESULTS has of an earlier run is removed.
# PYTHON is the Python with PyTorch and NumPy (python3). WORDS, DIM, ATOMS and EPOCHS
# are the sizes of the benchmark (400000, 300, 3000, 20). Of the GPUs that
# CUDA_VISIBLE_DEVICES names it takes the first.
# shellcheck disable=SC2329 # stages call functions
set -euo pipefail

[ $# -ge 1 ] || { sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2; exit 2; }
bundle=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
results=$(cd "$1" && pwd)
shift
words=${WORDS:-400000} dim=${DIM:-300} atoms=${ATOMS:-3000} epochs=${EPOCHS:-20}
export OVERCOMPLETE_LIBCUDA=${OVERCOMPLETE_LIBCUDA:-libcuda.so.1}
gpus=${CUDA_VISIBLE_DEVICES:-0}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${gpus%%,*} # nvidia-smi counts in that order
export CUDA_CACHE_PATH=$results/jit-cache CUDA_CACHE_DISABLE=0 # the driver compiles the kernels once
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
cd "$data"

for name in ${STAGES:-}; do
  grep -q "^stage $name " "$0" || { echo "gpu.sh: STAGES has $name, which is none" >&2; exit 2; }
done
[ -n "${STAGES:-}" ] || rm -f "$results"/{bench,torch}.json "$results/stages.txt"
touch "$results/stages.txt"
failed=0

# stage NAME SECONDS COMMAND… runs a command, or a function, in a shell of its own with a
# time limit. Its output goes to NAME.log. Exit status 3 means that something it can do
# without is missing.
stage() {
  local name=$1 limit=$2 start=$SECONDS status=0 word
  local log=$results/$name.log
  shift 2
  [[ " ${STAGES:-$name} " == *" $name "* ]] || return 0
  sed -i "/^$name /d" "$results/stages.txt"
  printf '=== %s\n' "$name"
  timeout --kill-after=1 "$limit" bash -euo pipefail -c '"$@"' "$name" "$@" >"$log" 2>&1 || status=$?
  case $status in
    0) word=passed ;;
    3) word=skipped ;;
    124 | 137) word="timed out" ;;
    *) word="failed ($status)" ;;
  esac
  case $word in passed | skipped) ;; *) failed=1 ;; esac
  [ "$word" = passed ] || grep -A 3 -e '--- FAIL' "$log" || tail -n 20 "$log"
  printf '%-8s %-12s %4d s\n' "$name" "$word" $((SECONDS - start)) | tee -a "$results/stages.txt"
}

device() {
  "$bundle/overcomplete" devices
  ! command -v nvidia-smi || nvidia-smi
}

tests() {
  "$bundle/kernels.test" -test.v -test.timeout=450s
}

# part PART [FLAG…]
part() {
  "$bundle/bench" gpu --words "$words" --dim "$dim" --atoms "$atoms" --epochs "$epochs" --json "$results/bench.json" "${@:2}" "$1"
}

train() {
  if command -v nvidia-smi; then
    nvidia-smi --id="$CUDA_VISIBLE_DEVICES" --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu \
      --format=csv --loop-ms=200 >"$results/clocks.csv" 2>&1 &
    sampler=$!
    trap 'kill $sampler || true' EXIT
  fi
  part train "$@"
}

tool() {
  "$bundle/bench" vectors --words 2000 --dim "$dim" small.npy
  seq 2000 >small.txt
  "$bundle/overcomplete" train small.npy --words small.txt -o model --device cuda -k "$atoms" --epochs 3
  "$bundle/overcomplete" encode model small.npy --words small.txt -o encoded --device cuda
}

peer() {
  "${PYTHON:-python3}" -c 'import numpy, torch' || exit 3
  "$bundle/bench" vectors --words "$words" --dim "$dim" vectors.npy
  "${PYTHON:-python3}" "$bundle/torch_rda.py" vectors.npy --atoms "$atoms" --epochs "$epochs" --json "$results/torch.json"
}

# timeout runs programs, not functions: each is one for a shell of its own.
export bundle results words dim atoms epochs
export -f device tests part train tool peer
stage device 15 device
stage tests 460 tests
stage train 200 train "$@"
stage encode 70 part encode "$@"
stage compare 90 part compare "$@"
stage profile 60 part profile "$@"
stage torch 200 peer
stage stream 60 part stream "$@"
stage tool 40 tool
stage scale 150 part scale "$@"

if [ -e "$results/bench.json" ]; then
  reports=("$results/bench.json")
  [ ! -e "$results/torch.json" ] || reports+=("$results/torch.json")
  "$bundle/bench" table "${reports[@]}" | tee "$results/table.txt"
fi
echo
cat "$results/stages.txt"
exit $failed
