# smoke.sh PROGRAM: the smoke tier of the experiments in a folder of its own, stopped once on the way and continued, then
# once more with nothing left to do. Prints what was learned; fails where the best of the models is at the most frequent
# class (12 %) or a result is missing.
set -eu
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/experiments"
cp -r experiments/smoke "$folder/experiments/"
cd "$folder"
status=0
timeout 20 "$program" reproduce --tier smoke || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 124 ]
"$program" reproduce --tier smoke
"$program" reproduce --tier smoke 2>&1 | grep "nothing to do"
"$program" reproduce --tier smoke --list
[ "$(ls experiments/results/smoke | wc -l)" -eq "$("$program" reproduce --tier smoke --list | grep -c " done ")" ]
for result in experiments/results/smoke/*.json; do
  accuracy=$(sed -n '/"best": {/,/}/s/.*"accuracy": \([0-9.]*\).*/\1/p' "$result")
  echo "$(basename "$result" .json) $accuracy"
done | sort -k 2 -n | tee accuracies
awk '{ best = $2 } END { exit !(best > 0.2) }' accuracies
