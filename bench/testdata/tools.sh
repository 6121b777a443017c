#!/usr/bin/env bash
# A stand-in for compute-sanitizer, ncu or nvidia-smi, depending on its name. It refuses options that the
# real tool lacks, and runs the program that follows them on the emulated driver.
set -euo pipefail
tool=${0##*/}

# The long options, with = if an argument follows.
case $tool in
  compute-sanitizer) # of --help in CUDA 12.9 and 13.5
    options="backtrace-short= check-api-memory-access= check-cache-control check-device-heap= check-exit-code= coredump-name=
      demangle= destroy-on-device-error= error-exitcode= force-blocking-launches generate-coredump injection-path=
      kernel-name-exclude= kernel-name= kill language= launch-count= launch-skip= launch-timeout= leak-check= log-file=
      max-connections= mode= num-callers-device= num-callers-host= nvtx= padding= port= prefix= print-level= print-limit=
      quiet racecheck-detect-level= racecheck-memcpy-async= racecheck-report= read= report-api-errors= require-cuda-init=
      save= show-backtrace= strip-paths= target-processes= tool= track-unused-memory version xml" ;;
  ncu) # of --help in 2022.3, for CUDA 11.8
    options="apply-rules= cache-control= check-exit-code= clock-control= csv details-all devices= export= filter-mode=
      force-overwrite import= kernel-id= kernel-name-base= kernel-name= kill= launch-count= launch-skip-before-match=
      launch-skip= log-file= metrics= mode= null-stdin nvtx open-in-ui page= print-fp print-kernel-base= print-summary=
      print-units= profile-from-start= quiet replay-mode= rule= section= set= target-processes= version" ;;
  nvidia-smi) # of --help in 535
    for argument; do
      case $argument in
        -q | --id=* | --query-gpu=* | --format=csv | --loop-ms=*) ;;
        *) echo "Invalid combination of input arguments: $argument"; exit 1 ;;
      esac
    done
    echo "timestamp, clocks.current.sm [MHz]"
    [[ "$*" != *--loop-ms=* ]] || exec sleep 600
    exit ;;
esac

declare -A given
while [[ ${1:-} == -* ]]; do
  name=${1#--}
  case " "${options//$'\n'/ }" " in
    *" $name= "*) given[$name]=$2; shift 2 ;;
    *" $name "*) shift ;;
    *) echo "unrecognised option '$1'" >&2; exit 255 ;;
  esac
done

sanitizer() {
  echo "========= COMPUTE-SANITIZER"
  case ${given[tool]} in memcheck | racecheck | synccheck | initcheck) ;; *) exit 255 ;; esac
  local status=0
  "$@" || status=$?
  echo "========= ERROR SUMMARY: 0 errors"
  exit $status
}

# ncu counts the invocations of each kernel from 1.
profiler() {
  # Sets without metrics: "basic" before 2023, "default" since.
  case ${given[set]:-detailed} in detailed | full) ;; *) echo "==WARNING== No metrics to collect found in sections."; exit 1 ;; esac
  local log status=0
  log=$(mktemp)
  EMULATED_LOG=$log "$@" || status=$?
  # ::regex:EXPRESSION:INVOCATION
  local expression=${given[kernel-id]#::regex:}
  awk -v expression="${expression%:*}" -v invocation="${expression##*:}" '
    { sub(/^graph:/, "") }
    $0 != "" && ++count[$0] == invocation && $0 ~ expression { printf "==PROF== Profiling \"1:13:%s:%d\": 0%%....50%%....100%% - 20 passes\n", $0, invocation }
    END { if (!n) print "==WARNING== No kernels were profiled." }' "$log"
  rm "$log"
  exit $status
}

case $tool in compute-sanitizer) sanitizer "$@" ;; *) profiler "$@" ;; esac
