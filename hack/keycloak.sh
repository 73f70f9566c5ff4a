#!/usr/bin/env bash
# Puts Keycloak, which `make test-idp` runs, at bin/keycloak, from Maven Central. It is
# checked against the sum below, unpacked, and built once for a database in memory; it is
# not installed. It needs Maven and Java 17 or later, minutes and 330 MB, and so is not
# part of `make test`. Does nothing if it exists; may run twice at the same time.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=26.0.8
sum=d82a52098db41f036bcfe8f2ebfd9251781c8af5959af8714e8aa9b311081786

# unpack SCRATCH leaves Keycloak in SCRATCH/out.
unpack() {
	local zip=$1/maven/org/keycloak/keycloak-quarkus-dist/$version/keycloak-quarkus-dist-$version.zip
	log "fetching Keycloak $version"
	mvn --quiet --batch-mode dependency:get -Dtransitive=false "-Dmaven.repo.local=$1/maven" \
		"-Dartifact=org.keycloak:keycloak-quarkus-dist:$version:zip" >&2 ||
		fail "Maven could not download Keycloak; check the network and Maven's settings, then try again"
	verify_sha256 "$zip" "$sum"
	python3 -m zipfile -e "$zip" "$1/unpacked"
	mv "$1/unpacked/keycloak-$version" "$1/out"
	chmod 755 "$1/out/bin/kc.sh"
	log "building Keycloak (once; it takes some minutes)"
	"$1/out/bin/kc.sh" build --db=dev-mem >&2 || fail "Keycloak could not be built; it needs Java 17 or later"
}

need_command mvn "install Maven (Debian: apt-get install maven)"
need_command java "install Java 17 or later (Debian: apt-get install default-jre-headless)"
# The directory's name contains the version: another version goes into another directory.
dir=$(gatehouse_root)/bin/tools/keycloak-$version
install_once "$dir" unpack
ln -sfn "tools/${dir##*/}" "$(gatehouse_root)/bin/keycloak"
log "bin/keycloak is Keycloak $version"
