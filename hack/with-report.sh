#!/usr/bin/env bash
# go test -exec hack/with-report.sh runs a test program in the directory of its package, and
# leaves the report of its specs in REPORTS (bin/reports), with the processor time that it took.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
name=${PWD#"$root"/}
report=$root/${REPORTS:-bin/reports}/${name//\//_}${REPORT_SUFFIX:-}
mkdir -p "${report%/*}"
status=0
"$@" -ginkgo.json-report="$report.json" || status=$?
times >"$report.cpu"
exit "$status"
