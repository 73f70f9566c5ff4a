#!/usr/bin/env bash
# Creates a database in an empty volume, then runs its arguments.
set -euo pipefail

if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
	user=${POSTGRES_USER:-postgres}
	[ -s "${POSTGRES_PASSWORD_FILE:-}" ] || { echo "POSTGRES_PASSWORD_FILE must name a file with the password of $user" >&2; exit 1; }
	install -d -m 0700 "$PGDATA"
	initdb --username="$user" --pwfile="$POSTGRES_PASSWORD_FILE" --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 >&2
	echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
	# Only on the Unix socket: clients must not take it for the server.
	pg_ctl -o "-c listen_addresses=''" -w start >&2
	[ "${POSTGRES_DB:-$user}" = postgres ] || createdb --username="$user" "${POSTGRES_DB:-$user}"
	pg_ctl -m fast -w stop >&2
fi
[ "$1" != postgres ] || set -- "$@" -c listen_addresses='*'
exec "$@"
