#!/bin/sh
# Plays a run as a Slurm job array, then merges and scores it:
#
#   export OPENAI_API_KEY=...
#   ./submit.sh /shared/study openai/o4-mini 64 --limit 2000 --rpm 6000
#
# The folder may be on a network disk. The same command again, when these jobs have ended, continues
# what is unfinished.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 FOLDER MODEL SHARDS [OPTION OF run]..." >&2; exit 2; }

export RESULTS=$1 MODEL=$2
shards=$3
shift 3
here=$(dirname "$0")
mkdir -p "$RESULTS"

array=$(sbatch --parsable --array="0-$((shards - 1))" "$here/shards.sbatch" "$@")
# After every element has ended, however it ended: what a shard lacks is named by `score` and can be resumed.
sbatch --dependency="afterany:${array%%;*}" "$here/merge.sbatch"
