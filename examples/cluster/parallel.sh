#!/bin/bash
# Encodes a large file on many machines, with GNU parallel over ssh:
#
#	bash parallel.sh MODEL VECTORS OUT MACHINES
#
# MACHINES is a file with a machine a line, as ssh calls it, or : for this one. All see this
# directory under the same name, and have overcomplete in the PATH that ssh gives. Run again,
# it does what is not done yet.
set -euo pipefail
export MODEL=$1 VECTORS=$2 OUT=$3 n=16

# Shards must be of one kind of processor to be merged. If some machines lack AVX-512 or a
# GPU, choose what all have:
# export OVERCOMPLETE_CPU=avx2 # add it to --env, and encode with --device cpu

# One job a machine: it takes all processors.
seq $n | parallel --sshloginfile "$4" --jobs 1 --workdir "$PWD" --env MODEL,VECTORS,OUT,n \
	--joblog "$OUT.log" --resume-failed --retries 3 '
	i={}
	overcomplete encode "$MODEL" "$VECTORS" -o "$OUT.$i-of-$n" --shard "$i/$n" --force
'
overcomplete merge "$OUT".*-of-$n -o "$OUT"
