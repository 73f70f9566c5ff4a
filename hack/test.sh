#!/usr/bin/env bash
# Runs all specs, for "make test", which builds and fetches what they need, and prints
# where the time went. Most specs wait more than they compute, so packages run at the same
# time, and those of test/e2e in several processes.
#
# The race detector watches the packages whose code shares memory between goroutines:
# those that start some, or use locks or atomics. The programs that the specs of test/
# run are built without it; "make soak" runs them with it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

root=$PWD
reports=$root/bin/reports
rm -rf "$reports"
mkdir -p "$reports"

# sorted sets race and rest to the packages with tests, but for those with a job of their own.
sorted() {
	local dir
	race=() rest=()
	while IFS= read -r dir; do
		dir=${dir#"$root"/}
		case $dir in
		test/e2e | test/kubernetes | test/policies | test/console) continue ;;
		pkg/* | cmd/*)
			if find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec grep -qE '^\s+go |"(sync|sync/atomic|golang.org/x/sync/errgroup)"$' {} +; then
				race+=("./$dir")
				continue
			fi
			;;
		esac
		rest+=("./$dir")
	done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... | grep .)
}

# These compute for minutes if they are watched. Others start the same goroutines.
unwatched='equals the result from scratch|is built once for all services|golden case'

# with_race I N runs each Nth package of those that are watched, from the Ith.
with_race() {
	# SQLite's translated C code is not watched: it would take most of the time.
	CGO_ENABLED=1 go test -race -gcflags='modernc.org/...=-race=false' "${flags[@]}" -p 1 $(each "$1" "$2" "${race[@]}") -ginkgo.skip="$unwatched"
}

# without_race I N does the same for the others.
without_race() { go test "${flags[@]}" -p 1 $(each "$1" "$2" "${rest[@]}"); }

unwatched() { REPORT_SUFFIX=_unwatched go test "${flags[@]}" ./pkg/xds/pipeline -ginkgo.focus="$unwatched"; }

# each I N PACKAGE... prints each Nth package, from the Ith.
each() {
	local i=$1 n=$2
	shift 2
	for ((; i < $#; i += n)); do echo "${@:i+1:1}"; done
}

# The longest package. Its output, with what the specs measured, is shown only if it fails, as go test does.
end_to_end() {
	local out=$reports/test_e2e.log status=0
	go tool ginkgo --vet=off --procs=3 --no-color --succinct --timeout=30m --output-dir="$reports" --json-report=test_e2e.json ./test/e2e >"$out" 2>&1 || status=$?
	if [ "$status" -eq 0 ]; then tail -n 4 "$out"; else cat "$out"; fi
	return "$status"
}

kubernetes() { go test "${flags[@]}" ./test/kubernetes; }

policies() { go test "${flags[@]}" ./test/policies; }

console() { go test "${flags[@]}" ./test/console; }

sorted
# make lint runs vet.
flags=(-vet=off -timeout 30m -exec "$root/hack/with-report.sh")
# Commands in the background ignore Ctrl-C.
trap 'trap - INT TERM; kill 0' INT TERM

# Three at a time, until all are done: a machine of two processors is busy with them, and one that is too busy breaks
# promises about time. The longest come first, and the first with the race detector compiles what the others use.
jobs=(
	end_to_end 'with_race 0 4' 'without_race 0 3' kubernetes policies console 'with_race 1 4' 'without_race 1 3' unwatched
	'with_race 2 4' 'without_race 2 3' 'with_race 3 4'
)
failed=()
declare -A running=()
# next waits until one is done.
next() {
	local pid status=0
	wait -n -p pid "${!running[@]}" || status=$?
	[ "$status" -eq 0 ] || failed+=("${running[$pid]}")
	unset "running[$pid]"
}
for job in "${jobs[@]}"; do
	[ ${#running[@]} -lt 3 ] || next
	# shellcheck disable=SC2086 # a function and its arguments
	$job &
	running[$!]=$job
done
while [ ${#running[@]} -gt 0 ]; do next; done
go run ./hack/slowest "$reports"
[ ${#failed[@]} -eq 0 ] || fail "specs failed (${failed[*]}); see above"
log "make test: everything passed"
