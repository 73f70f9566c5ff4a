#!/usr/bin/env bash
# Puts MkDocs with the theme Material, which builds the site of the documentation, at
# bin/mkdocs. It comes from the Python package index with its dependencies, each file
# checked against hack/mkdocs.txt. Does nothing if it exists; may run twice at the same
# time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
requirements=$root/hack/mkdocs.txt

# The directory's name contains a hash of the list: another list goes into another
# directory.
dir=$root/bin/tools/mkdocs-$(sha256sum "$requirements" | cut -c 1-12)
[ -d "$dir" ] || log "fetching MkDocs"
install_once "$dir" install_python "$requirements"
# The environment was moved after it was created, so its own scripts do not work.
printf '#!/bin/sh\nexec "%s/bin/python" -m mkdocs "$@"\n' "$dir" >"$root/bin/mkdocs.$$"
chmod 755 "$root/bin/mkdocs.$$"
mv "$root/bin/mkdocs.$$" "$root/bin/mkdocs"
