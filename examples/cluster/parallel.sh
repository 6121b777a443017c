#!/bin/bash
# Encodes a large file on many machines, with GNU parallel over ssh:
#
#	bash parallel.sh MODEL VECTORS OUT MACHINES
#
# MACHINES is a file that lists one machine per line, by its ssh name, or : for this one. All machines
# mount this directory under the same path, and have overcomplete in the PATH of ssh. Running the script
# again encodes only the shards that are missing.
set -euo pipefail
export MODEL=$1 VECTORS=$2 OUT=$3 n=16

# Shards can be merged only if one kind of processor encoded them: x86 with AVX2, ARM, or GPUs. If only
# some machines have a GPU, encode with --device cpu.

# One job per machine, because it uses all processors.
seq $n | parallel --sshloginfile "$4" --jobs 1 --workdir "$PWD" --env MODEL,VECTORS,OUT,n \
	--joblog "$OUT.log" --resume-failed --retries 3 '
	i={}
	overcomplete encode "$MODEL" "$VECTORS" -o "$OUT.$i-of-$n" --shard "$i/$n" --force
'
overcomplete merge "$OUT".*-of-$n -o "$OUT"
