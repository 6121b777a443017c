#!/usr/bin/env bash
# Measures a machine with an NVIDIA GPU. It runs the kernels' tests, the parts of the benchmark, the program, and, if
# they are installed, NVIDIA's tools and the same algorithms in PyTorch.
#
# usage: gpu.sh RESULTS [flags of "bench gpu"]
#
# The bundle of "make gpu-bundle" contains this script and the programs that it runs. The machine needs an NVIDIA
# driver, but neither Go nor a CUDA toolkit. The directory RESULTS receives bench-STAGE.txt for benchstat, and logs.
# The archive RESULTS.tar.gz contains all of them. It is written after each stage, and when the script ends or gets a
# signal.
#
# Each stage is a process with a time limit. A few of the kernels' tests come first, because other results are worth
# little if they fail. The most valuable stages follow. If a stage fails or times out, the script reports it, keeps its
# results so far, runs the other stages, and exits with 1.
#
# STAGES names the stages to run, such as "tests train"; the results of the others are kept. "first" means the most
# valuable stages, which take at most eight minutes, and less than five on an H100. Without STAGES, the results of an
# earlier run are removed. ARCHIVE is another path for the archive. PYTHON is a Python with PyTorch and NumPy (python3).
# WORDS, DIM, ATOMS and EPOCHS are the sizes of the benchmark (400000, 300, 3000, 20). LENGTHS lists the vector lengths
# of the stage "tune". The script uses the first GPU of CUDA_VISIBLE_DEVICES.
# shellcheck disable=SC2329 # stages call functions
set -euo pipefail

[ $# -ge 1 ] || { sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2; exit 2; }
bundle=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
results=$(cd "$1" && pwd)
shift
archive=$(realpath "${ARCHIVE:-$results.tar.gz}")
words=${WORDS:-400000} dim=${DIM:-300} atoms=${ATOMS:-3000} epochs=${EPOCHS:-20}
lengths=${LENGTHS:-50 300 384 768 1024 1536}
first="device smoke train encode torch command ncu sanitize"
stages=${STAGES:-}
[ "$stages" != first ] || stages=$first
for name in $stages; do
  grep -q "^stage $name " "$0" || { echo "gpu.sh: STAGES has $name, which is none" >&2; exit 2; }
done
export OVERCOMPLETE_TEST_GPU=${OVERCOMPLETE_TEST_GPU-1} # the kernels' tests use the GPU
gpus=${CUDA_VISIBLE_DEVICES:-0}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${gpus%%,*} # the order of nvidia-smi
export CUDA_CACHE_PATH=$results/jit-cache CUDA_CACHE_DISABLE=0 # the driver compiles the kernels once
data=$(mktemp -d)
cd "$data"

# pack writes the archive atomically. It leaves out compiled kernels, which can be compiled again in seconds.
pack() {
  tar -C "$results" --exclude=./jit-cache -czf "$archive.new" . && mv "$archive.new" "$archive"
}

jobs=() # processes that end with the script
finish() {
  kill "${jobs[@]}" 2>/dev/null || true
  pack || true
  rm -rf "$data"
}
trap finish EXIT
trap 'exit 143' TERM INT HUP # so that a wait ends at once

[ -n "$stages" ] || rm -f "$results"/bench-*.txt "$results"/{stages.txt,clocks.csv}
touch "$results/stages.txt"
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --id="$CUDA_VISIBLE_DEVICES" --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu \
    --format=csv --loop-ms=200 >>"$results/clocks.csv" 2>&1 &
  jobs+=($!)
fi
failed=0

# stage NAME SECONDS COMMAND… runs a command or a function in a shell of its own with a time limit. Its output goes to
# NAME.log. Its exit status 3 means that an optional tool is missing.
stage() {
  local name=$1 limit=$2 start=$SECONDS status=0 word
  local log=$results/$name.log
  shift 2
  [[ " ${stages:-$name} " == *" $name "* ]] || return 0
  sed -i "/^$name /d" "$results/stages.txt"
  printf '=== %s\n' "$name"
  timeout --kill-after=1 "$limit" bash -euo pipefail -c '"$@"' "$name" "$@" >"$log" 2>&1 &
  jobs+=($!)
  wait $! || status=$?
  unset 'jobs[-1]'
  ! grep -q 'no tests to run' "$log" || status=1
  case $status in
    0) word=passed ;;
    3) word=skipped ;;
    124 | 137) word="timed out" ;;
    *) word="failed ($status)" ;;
  esac
  case $word in passed | skipped) ;; *) failed=1 ;; esac
  [ "$word" = passed ] || grep -A 3 -e '--- FAIL' "$log" || tail -n 20 "$log"
  printf '%-8s %-12s %4d s\n' "$name" "$word" $((SECONDS - start)) | tee -a "$results/stages.txt"
  pack
}

device() {
  "$bundle/overcomplete" devices
  ! command -v nvidia-smi || nvidia-smi -q || true # it fails in some containers
  ldconfig -p 2>/dev/null | grep -i -e cuda -e nvidia || true
}

tests() {
  "$bundle/kernels.test" -test.v -test.timeout=450s
}

smoke() {
  "$bundle/kernels.test" -test.v -test.timeout=70s -test.run='^Test(Kernels|Learner|Encoder|Graph)$'
}

# sanitize checks accesses out of bounds, races and barriers in the machine code of the device, which no emulator can
# check. All kernels run at sizes that no tile divides.
sanitize() {
  command -v compute-sanitizer || exit 3
  sanitizer() { # TOOL TEST; the program itself checks the driver's calls
    echo "--- $1"
    compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 "$bundle/kernels.test" -test.v -test.run="$2"
  }
  # On some machines the sanitizer can't use a GPU. A small kernel then fails, and no error is counted.
  sanitizer memcheck '^TestKernels$/^totals$/31_' | tee probe.log || grep -q 'ERROR SUMMARY: [1-9]' probe.log || exit 3
  status=0
  for tool in memcheck racecheck synccheck; do
    sanitizer "$tool" '^TestKernels$/./(129_130_33|33_300_70|4_259_133|65_260_300|33_133_300|3_133_384|5_133_767|3_66_1021|33_129_0|33_0_0|9_128_0|70_300_0|9_32_0|17_33_0|5_7_0|37_45_4|5000_0_0)' || status=$?
  done
  return $status
}

# counters measures for the main kernels of a batch what they wait for, and how much of L2 and of the tensor cores they
# use. The batches are as large as the batches of 60,000 words (train) and of 400,000 words (paper train).
counters() {
  command -v ncu || exit 3
  failed=0
  count() { # COMMAND WORDS KERNELS FLAGS…; the kernels are regular expressions
    "$bundle/bench" vectors --words "$2" --dim "$dim" counted.npy
    seq "$2" >counted.txt
    status=0
    # shellcheck disable=SC2086 # a command of two words
    ncu --clock-control none --set detailed --kernel-id "::regex:^(${3// /|})$:2" \
      "$bundle/overcomplete" $1 counted.npy --words counted.txt -o counted --device cuda -k "$atoms" --epochs 2 "${@:4}" 2>&1 | tee counted.log || status=$?
    rm -rf counted
    ! grep -q -e ERR_NVGPUCTRPERM -e 'not supported on' counted.log || exit 3 # some machines permit counters only to root
    for kernel in $3; do
      # ncu prints CONTEXT:STREAM:KERNEL:INVOCATION if --kernel-id selects kernels.
      grep -q -E "Profiling \"([0-9]+:[0-9]+:)?$kernel(:[0-9]+)?\"" counted.log || { echo "gpu.sh: no counters of $kernel"; status=1; }
    done
    [ $status = 0 ] || failed=$status
  }
  count train 3752 "search_[a-z0-9]+ polish round_atoms remember power jacobi" --dictionary-steps 4
  count "paper train" 3125 "decode_tf32 accumulate_tf32 correlate_tf32 body" --dictionary-steps 1
  count "paper train" 3125 "decode_fp16 update_fp16 update_codes finish_codes_fp16 body" --precision fp16 --dictionary-steps 1
  return $failed
}

# part PART [FLAG…] runs a part of the benchmark.
part() {
  "$bundle/bench" gpu --words "$words" --dim "$dim" --atoms "$atoms" --epochs "$epochs" "${@:2}" "$1" | tee "$results/bench-$1.txt"
}

# tune measures encoding at other vector lengths, for which other kernels search. The number of atoms is ten times the
# length, but at most 3,072.
tune() {
  for length in $lengths; do
    "$bundle/bench" gpu --words $((words / 4)) --dim "$length" --atoms $((10 * length < 3072 ? 10 * length : 3072)) "$@" encode
  done | tee "$results/bench-tune.txt"
}

vectors() {
  [ -e vectors.npy ] || "$bundle/bench" vectors --words "$words" --dim "$dim" vectors.npy
}

# wall NAME COMMAND… runs a command of the program with files. It prints the time since the start before each line, so
# that reading, learning, and encoding with writing can be told apart.
wall() {
  local start=${EPOCHREALTIME/[.,]/} line
  printf '\n%s\n' "overcomplete ${*:2}"
  "$bundle/overcomplete" "${@:2}" --words words.txt --device cuda 2>&1 | while IFS= read -r line; do
    printf '%8d ms  %s\n' $(((${EPOCHREALTIME/[.,]/} - start) / 1000)) "$line"
  done
  echo "BenchmarkGPUCommand/$1/V=$words/L=$dim/K=$atoms 1 $(((${EPOCHREALTIME/[.,]/} - start) * 1000)) ns/op" >>"$results/bench-command.txt"
}

command_time() {
  vectors
  seq "$words" >words.txt
  rm -f "$results/bench-command.txt"
  wall train train vectors.npy -o model --force --progress -k "$atoms"
  wall train-all train vectors.npy -o model --force --progress -k "$atoms" --train-rows all
  wall encode encode model vectors.npy -o encoded
}

peers() {
  python=${PYTHON:-python3} failed=0
  "$python" -c 'import numpy, torch' || exit 3
  vectors
  "$python" "$bundle/torch_fista.py" vectors.npy --atoms "$atoms" | tee "$results/bench-torch.txt" || failed=1
  "$python" "$bundle/torch_rda.py" vectors.npy --atoms "$atoms" --epochs "$epochs" --modes graph | tee -a "$results/bench-torch.txt" || failed=1
  return $failed
}

# timeout can't run functions, so that each runs in a shell of its own.
export bundle results words dim atoms epochs lengths
export -f device tests smoke sanitize counters part tune vectors wall command_time peers
stage device 15 device
stage smoke 75 smoke
stage train 100 part train "$@"
stage encode 40 part encode "$@"
stage torch 90 peers
stage command 60 command_time
stage ncu 40 counters
stage sanitize 45 sanitize
stage tests 460 tests
stage scale 150 part scale "$@"
stage tune 90 tune "$@"

echo
cat "$results/stages.txt"
exit $failed
