#!/bin/bash
# Encodes a large file on many machines, as an array job of Slurm. MODEL, VECTORS and OUT are
# where all machines see them under these names, and overcomplete is in the PATH:
#
#	job=$(sbatch --parsable slurm.sh MODEL VECTORS OUT)
#	sbatch --dependency=afterok:$job --kill-on-invalid-dep=yes --wrap 'overcomplete merge OUT.*-of-16 -o OUT'
#
# Tasks that failed can be run again alone, with --array=3,7 before slurm.sh, and the second
# job after them.
#
#SBATCH --job-name=encode
#SBATCH --array=1-16
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
set -euo pipefail
MODEL=$1 VECTORS=$2 OUT=$3
i=$SLURM_ARRAY_TASK_ID n=16 # as many as in --array

# Shards must be of one kind of processor to be merged. If some machines lack AVX-512 or a
# GPU, choose what all have:
# export OVERCOMPLETE_CPU=avx2 # and encode with --device cpu

overcomplete encode "$MODEL" "$VECTORS" -o "$OUT.$i-of-$n" --shard "$i/$n" --force
