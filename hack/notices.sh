#!/usr/bin/env bash
# Writes the licenses and notices of everything in a program to FILE, for
# the container image. The modules are those that the Go tool recorded in the
# program; their texts come from the module cache, as they were checked when it
# was built.
#
# usage: hack/notices.sh PROGRAM FILE [MODULE_DIR] [MORE_FILE...]
#   MODULE_DIR   has the go.mod that PROGRAM was built with (default: the top)
#   MORE_FILE    is written first, such as the notice of another program in the image
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -ge 2 ] || fail "usage: hack/notices.sh PROGRAM FILE [MODULE_DIR] [MORE_FILE...]"
root=$(gatehouse_root)
program=$1
file=$2
module_dir=${3:-$root}
shift $(($# < 3 ? $# : 3))

# texts DIR lists the license files of a module.
texts() {
	find "$1" -maxdepth 1 -type f -printf '%f\n' | LC_ALL=C sort |
		grep -iE '^(licen[cs]e|copying|copyright|notice|patents|unlicense|third[-_]party)' || true
}

# section NAME DIR prints the texts of one module.
section() {
	local list text
	list=$(texts "$2")
	[ -n "$list" ] || fail "$1 has no licence in $2: look for it, and decide whether it may be in the image"
	for text in $list; do
		printf '\n%s\n%s: %s\n%s\n\n' "$rule" "$1" "$text" "$rule"
		cat "$2/$text"
	done
}

rule=$(printf '=%.0s' {1..80})
[ -f "$program" ] || fail "$program is not there; build it first"
recorded=$(go version -m "$program") || fail "$program is no Go program"
modules=$(awk '$1 == "dep" { name = $2 "@" $3; print name } $1 == "=>" { print "replaced" }' <<<"$recorded")
[ -n "$modules" ] || fail "$program does not say what it was built from"
grep -q '^replaced$' <<<"$modules" && fail "$program holds a replaced module: hack/notices.sh does not know where its licence is"

mkdir -p "$(dirname "$file")"
scratch=$(mktemp "$file.XXXXXX")
trap 'rm -f "$scratch"' EXIT
{
	printf 'What %s holds that others wrote, and under which terms.\n' "$(basename "$program")"
	for text in "$@"; do
		printf '\n%s\n\n' "$rule"
		cat "$text"
	done
	section "Go $(go env GOVERSION), the standard library" "$(go env GOROOT)"
	for module in $modules; do
		dir=$(go -C "$module_dir" mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
		[ -d "$dir" ] || fail "the source of $module cannot be had: run go mod download $module"
		section "$module" "$dir"
	done
} >"$scratch"
chmod 644 "$scratch"
mv "$scratch" "$file"
log "$file: $(grep -c . <<<"$modules") modules"
