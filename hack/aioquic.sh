#!/usr/bin/env bash
# Puts a Python with aioquic, the client of HTTP/3 of the tests, at bin/aioquic. It comes
# from the Python package index with its dependencies, each file checked against
# hack/aioquic.txt. Does nothing if it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

root=$(gatehouse_root)
requirements=$root/hack/aioquic.txt

# The directory's name contains a hash of the list: another list goes into another
# directory.
dir=$root/bin/tools/aioquic-$(sha256sum "$requirements" | cut -c 1-12)
[ -d "$dir" ] || log "fetching aioquic"
install_once "$dir" install_python "$requirements"
printf '#!/bin/sh\nexec "%s/bin/python" "$@"\n' "$dir" >"$root/bin/aioquic.$$"
chmod 755 "$root/bin/aioquic.$$"
mv "$root/bin/aioquic.$$" "$root/bin/aioquic"
log "bin/aioquic has aioquic $("$root/bin/aioquic" -c 'import aioquic; print(aioquic.__version__)')"
