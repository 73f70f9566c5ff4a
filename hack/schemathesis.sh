#!/usr/bin/env bash
# Puts schemathesis, which checks a running API against its OpenAPI document, at
# bin/schemathesis. It comes from the Python package index with its dependencies, each
# file checked against hack/schemathesis.txt. Does nothing if it exists; may run twice
# at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
requirements=$root/hack/schemathesis.txt

# The directory's name contains a hash of the list: another list goes into another
# directory.
dir=$root/bin/tools/schemathesis-$(sha256sum "$requirements" | cut -c 1-12)
[ -d "$dir" ] || log "fetching schemathesis"
install_once "$dir" install_python "$requirements"
# The environment was moved after it was created, so its own scripts do not work.
printf '#!/bin/sh\nexec "%s/bin/python" -m schemathesis.cli "$@"\n' "$dir" >"$root/bin/schemathesis.$$"
chmod 755 "$root/bin/schemathesis.$$"
mv "$root/bin/schemathesis.$$" "$root/bin/schemathesis"
version=$("$root/bin/schemathesis" --version)
log "bin/schemathesis is ${version##* }"
