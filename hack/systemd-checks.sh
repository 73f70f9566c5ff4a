#!/usr/bin/env bash
# The checks of make test-systemd, inside the container.
set -uo pipefail
cd /src

failed=0
# check WHAT COMMAND... waits at most half a minute for a command to succeed.
check() {
	local what=$1
	shift
	for _ in $(seq 150); do
		"$@" >/tmp/last 2>&1 && echo "ok    $what" && return
		sleep 0.2
	done
	echo "WRONG $what: $*"
	cat /tmp/last
	systemctl status --no-pager gatehouse
	journalctl --no-pager -u gatehouse | tail -n 15
	failed=1
}

property() { systemctl show --value --property "$1" "$2"; }
is() { [ "$(property "$1" "$2")" = "$3" ]; }
ready() { curl -fsS http://127.0.0.1:1323/ready; }
answer() { curl -sS http://127.0.0.1/ | grep -q "nothing is here yet"; }
# settings NAME: VALUE... writes the settings file and starts the program anew.
settings() {
	printf '%s\n' "$@" >/etc/gatehouse/gatehouse.yaml
	systemctl restart gatehouse
}

. /out/install.sh
check "the commands of docs/operations.md start the gateway" ready
check "it runs as its own user" is User gatehouse gatehouse

settings 'http-port: 80'
check "it starts with a port below 1024" ready
A=http://127.0.0.1:1323
curl -fsS -d Filter_name=hello -d Filter_type=route_filter_directresponse --data-urlencode 'Filter_config={"body":"nothing is here yet"}' $A/filter
curl -fsS -d Service_Name=web -d 'fqdn=*' $A/service
curl -fsS -d Route_Name=root -d Route_prefix=/ $A/service/web/route
curl -fsS -X POST $A/service/web/route/root/filter/hello
curl -fsS -d Name=gw $A/proxy
curl -fsS -X POST $A/proxy/gw/service/web
echo
check "its Envoy answers there" answer

kill -9 "$(property MainPID gatehouse)"
check "it is started again after it was killed" is NRestarts gatehouse 1
check "its Envoy answers as before" answer

systemctl start gatehouse-backup
check "a backup is made" test -s "/var/backups/gatehouse/gatehouse-$(date +%u).db"
check "its timer runs" is ActiveState gatehouse-backup.timer active

settings 'http-port: 99999'
check "a wrong setting stops it" is ActiveState gatehouse failed
check "with exit code 2" is ExecMainStatus gatehouse 2
check "and it is not started again" is NRestarts gatehouse 0

settings 'database-url: postgres://postgres@127.0.0.1:5432/postgres'
sleep 12
check "it waits for a database that is late" is ActiveState gatehouse active
check "without a restart" is NRestarts gatehouse 0
install -d -o daemon /run/database
bin=$(echo /src/bin/postgres/*/bin)
as() { setpriv --reuid daemon --regid daemon --clear-groups "$@"; }
as "$bin/initdb" -D /run/database/data -U postgres -A trust >/dev/null
as "$bin/postgres" -D /run/database/data -c listen_addresses=127.0.0.1 -c unix_socket_directories= >/run/database/log 2>&1 &
check "it is ready when the database is" ready

[ "$failed" -eq 0 ] && touch /out/passed
