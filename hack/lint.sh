#!/usr/bin/env bash
# Runs every check that needs no test, and fails at the end if one of them failed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

bad=0
# check NAME COMMAND... runs a command that succeeds and prints nothing if there are no
# findings. Its standard error, such as the modules it fetches, is for the reader and
# not a finding.
check() {
	local name=$1 out
	shift
	if out=$("$@") && [ -z "$out" ]; then
		log "ok    $name"
	else
		log "WRONG $name"
		[ -z "$out" ] || log "$out"
		bad=1
	fi
}

unformatted() {
	local f
	git ls-files -z --cached --others --exclude-standard -- '*.go' | while IFS= read -r -d '' f; do
		# A file that was deleted may still be in the index.
		[ ! -f "$f" ] || printf '%s\0' "$f"
	done | xargs -0 -r gofmt -l
}

script_syntax() {
	local f
	while IFS= read -r -d '' f; do
		[ -f "$f" ] && ! bash -n "$f" && return 1
	done < <(git ls-files -z --cached --others --exclude-standard -- '*.sh' .ci/run test/newcomer/run)
	return 0
}

# It prints "0 issues." if there are none.
golangci() {
	# Including the specs of the images and of the cluster, which are built only on
	# demand. With the flags of "make build", which then finds the packages compiled.
	CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath" bin/tools/golangci-lint run --build-tags images,cluster,upgrade ./... | sed '/^0 issues\.$/d'
}

# Only if systemd is installed. It requires that the program exists, and may print
# findings about the units of this machine.
systemd_units() {
	command -v systemd-analyze >/dev/null || return 0
	local dir f
	dir=$(mktemp -d)
	for f in hack/systemd/*; do
		sed 's#/usr/local/bin/gatehouse#/bin/true#' "$f" >"$dir/$(basename "$f")"
	done
	{ systemd-analyze verify "$dir"/* 2>&1 || echo "gatehouse: the units cannot be used"; } | grep gatehouse || true
	rm -r "$dir"
}

check "gofmt" unformatted
check "go.mod (go mod tidy)" go mod tidy -diff
check "ratelimit/go.mod (go mod tidy)" go -C ratelimit mod tidy -diff
check "CustomResourceDefinitions (make crds)" hack/crds.sh --check
check "console (make console)" hack/console.sh --check
check "shell syntax" script_syntax
check "units of systemd" systemd_units
check "golangci-lint" golangci
check "documentation (make docs)" go run ./hack/docs
[ "$bad" -eq 0 ] || fail "make lint found something"
log "make lint: everything is clean"
