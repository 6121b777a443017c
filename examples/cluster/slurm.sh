#!/bin/bash
# Encodes a large file on many machines, as an array job of Slurm. All machines reach MODEL, VECTORS and
# OUT by these paths, and have overcomplete in the PATH:
#
#	job=$(sbatch --parsable slurm.sh MODEL VECTORS OUT)
#	sbatch --dependency=afterok:$job --kill-on-invalid-dep=yes --wrap 'overcomplete merge OUT.*-of-16 -o OUT'
#
# To repeat only the tasks that failed, such as 3 and 7, add --array=3,7 before slurm.sh, and submit the
# second job again.
#
#SBATCH --job-name=encode
#SBATCH --array=1-16
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
set -euo pipefail
MODEL=$1 VECTORS=$2 OUT=$3
i=$SLURM_ARRAY_TASK_ID n=16 # n is the size of --array

# Shards can be merged only if one kind of processor encoded them: x86 with AVX2, ARM, or GPUs. If only
# some machines have a GPU, encode with --device cpu.

overcomplete encode "$MODEL" "$VECTORS" -o "$OUT.$i-of-$n" --shard "$i/$n" --force
