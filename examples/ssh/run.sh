#!/bin/sh
# Plays a run on several machines that ssh reaches, one shard on each, then fetches, merges and scores:
#
#   ./run.sh hosts.txt study --model openai/o4-mini --limit 600 --rpm 900
#
# hosts.txt holds one host a line. Each needs propensitybench on its PATH and the API key in its environment
# (~/.ssh/environment, or SendEnv and AcceptEnv). The same command again continues what is unfinished.
set -u
[ $# -ge 4 ] || { echo "usage: $0 HOSTS FOLDER --model MODEL [OPTION OF run]..." >&2; exit 2; }

hosts=$1 folder=$2
shift 2
remote=${REMOTE:-/var/tmp/propensity-$(basename "$folder")} # a local disk that keeps files over a restart
mkdir -p "$folder"

options=
for option; do # quoted for the shell of the other machine
  options="$options '$(printf %s "$option" | sed "s/'/'\\\\''/g")'"
done

count=$(grep -c . "$hosts")
index=0
pids=
for host in $(cat "$hosts"); do
  index=$((index + 1))
  file=$remote/shard-$index.run
  (
    ssh -n "$host" "mkdir -p '$remote' && propensitybench run --shard $index/$count --run '$file'$options"
    code=$?
    # Also what is unfinished is fetched: it can be scored, and finished anywhere.
    ssh -n "$host" "cat '$file'" >"$folder/.shard-$index.draft" &&
      mv "$folder/.shard-$index.draft" "$folder/shard-$index.run"
    exit "$code"
  ) >"$folder/shard-$index.log" 2>&1 &
  pids="$pids $!"
done

failed=0
index=0
for pid in $pids; do
  index=$((index + 1))
  if ! wait "$pid"; then
    failed=1
    echo "shard $index is not finished, see $folder/shard-$index.log: $(tail -n 1 "$folder/shard-$index.log")" >&2
  fi
done
if [ "$failed" -eq 1 ]; then
  echo "the same command again continues" >&2
  exit 1
fi

rm -f "$folder/whole.run"
propensitybench merge "$folder"/shard-*.run --run "$folder/whole.run" &&
  propensitybench score "$folder/whole.run"
