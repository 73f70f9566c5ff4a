#!/usr/bin/env bash
# Puts schemathesis, which checks a running API against its OpenAPI document, at
# bin/schemathesis. It comes from the Python package index with its dependencies, each
# file checked against hack/schemathesis.txt. Does nothing if it exists; may run twice
# at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
requirements=$root/hack/schemathesis.txt

# install SCRATCH leaves a Python environment in SCRATCH/out.
install() {
	local pip
	pip=$(pip_command)
	log "fetching schemathesis"
	python3 -m venv --without-pip "$1/out" >&2 ||
		fail "Python cannot make an environment (python3 -m venv); install Python 3.10 or later with its venv module"
	# $pip is one or three words.
	# shellcheck disable=SC2086
	$pip --disable-pip-version-check --python "$1/out/bin/python" install --quiet --no-deps --only-binary=:all: \
		--require-hashes -r "$requirements" >&2 ||
		fail "pip could not install what hack/schemathesis.txt lists; check the network and pip's index settings (pip config list), then try again"
}

# The directory's name contains a hash of the list: another list goes into another
# directory.
dir=$root/bin/tools/schemathesis-$(sha256sum "$requirements" | cut -c 1-12)
install_once "$dir" install
# The environment was moved after it was created, so its own scripts do not work.
printf '#!/bin/sh\nexec "%s/bin/python" -m schemathesis.cli "$@"\n' "$dir" >"$root/bin/schemathesis.$$"
chmod 755 "$root/bin/schemathesis.$$"
mv "$root/bin/schemathesis.$$" "$root/bin/schemathesis"
version=$("$root/bin/schemathesis" --version)
log "bin/schemathesis is ${version##* }"
