#!/usr/bin/env bash
# Runs the local stack, docker-compose.yaml: `make up`, `make down`, `make logs`.
# docs/local-stack.md describes it.
#
# usage: hack/stack.sh up|down|logs [ARG...]
#
# STACK_ENV names the file with its settings, which the first `up` writes; without
# it that is .env at the top of the checkout. IMAGES=local builds what would come
# from a registry. PROFILES lists profiles to add: oidc, observe.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

docker=${DOCKER:-docker}
settings=${STACK_ENV:-.env}
umask 077

# find_compose sets compose to the command that runs Docker Compose.
find_compose() {
	if "$docker" compose version >/dev/null 2>&1; then
		compose=("$docker" compose)
	else
		[ -x bin/docker-compose ] || make --no-print-directory compose >&2
		compose=(bin/docker-compose)
	fi
	compose+=(--env-file "$settings" --project-directory . -f docker-compose.yaml)
}

random() {
	openssl rand -hex 24
}

# write_settings writes the file of settings, unless it is there.
write_settings() {
	local name=${STACK_NAME:-gatehouse} dir
	[ ! -e "$settings" ] || return 0
	dir=${STACK_DIR:-$PWD/.stack}
	[ -z "$("$docker" volume ls --quiet --filter "name=^${name}_postgres$")" ] ||
		fail "$settings is missing, and the volume ${name}_postgres has a database whose password was in it: put the file back, or remove the volumes with $docker volume rm ${name}_postgres ${name}_redis ${name}_gatehouse, then try again"
	cat >"$settings.new" <<-END
		# The local stack's settings and secrets, written by make up. The volumes need them: keep the file as
		# long as them. A password that is changed here is not changed in the database.
		STACK_NAME=$name
		# What the containers are given as files.
		STACK_DIR=$dir
		# Ports of 127.0.0.1.
		STACK_API_PORT=${STACK_API_PORT:-1323}
		STACK_EDGE_PORT=${STACK_EDGE_PORT:-8080}
		STACK_INNER_PORT=${STACK_INNER_PORT:-8081}
		POSTGRES_PASSWORD=$(random)
		# The REST API's admin token.
		API_TOKEN=gh_$(random)
	END
	mv "$settings.new" "$settings"
	log "wrote $settings, with new passwords"
}

# read_settings sets the variables of the file.
read_settings() {
	[ -e "$settings" ] || fail "$settings is missing: the stack was never started here, or it was started with another STACK_ENV"
	# shellcheck disable=SC1090
	. "$settings"
}

# put FILE [MODE] writes what it reads, in one step.
put() {
	cat >"$1.new"
	# Containers have other users: the directory above keeps those of this machine out.
	chmod 0444 "$1.new"
	mv -f "$1.new" "$1"
}

# write_files writes what the containers are given as files.
write_files() {
	local file proxy
	mkdir -p "$STACK_DIR"
	chmod 0700 "$STACK_DIR"
	mkdir -p "$STACK_DIR"/{secrets,config}
	chmod 0755 "$STACK_DIR"/{secrets,config}
	printf '%s' "$POSTGRES_PASSWORD" | put "$STACK_DIR/secrets/postgres-password"
	printf 'postgres:5432:gatehouse:gatehouse:%s\n' "$POSTGRES_PASSWORD" | put "$STACK_DIR/secrets/pgpass"
	printf '%s\n' "$API_TOKEN" | put "$STACK_DIR/secrets/api-token"
	printf 'Authorization: Bearer %s\n' "$API_TOKEN" | put "$STACK_DIR/secrets/api-header"
	for file in nginx.conf gateway.yaml; do
		put "$STACK_DIR/config/$file" <"hack/stack/$file"
	done
	for proxy in edge inner; do
		bin/gatehouse bootstrap --proxy "$proxy" --xds-addr gatehouse:18000 | put "$STACK_DIR/config/$proxy.yaml"
	done
}

# api PATH prints the answer of the REST API.
api() {
	curl -sS -f -H "@$STACK_DIR/secrets/api-header" "http://127.0.0.1:$STACK_API_PORT$1"
}

# configure applies the first configuration to an empty database.
configure() {
	local proxies
	proxies=$(api /proxy) || fail "the REST API at 127.0.0.1:$STACK_API_PORT does not answer; look at make logs"
	case $proxies in
	*':[]'*) "${compose[@]}" run --rm --no-deps -T configure >&2 ;;
	*) log "the database has proxies already: hack/stack/gateway.yaml is not applied" ;;
	esac
}

up() {
	local profile
	find_compose
	write_settings
	read_settings
	write_files
	for profile in ${PROFILES:-}; do
		compose+=(--profile "$profile")
	done
	"${compose[@]}" up --detach --wait --wait-timeout 180 gatehouse >&2 || fail "the control plane did not start; look at make logs"
	configure
	"${compose[@]}" up --detach --wait --wait-timeout 180 "$@" >&2 || fail "the stack did not start; look at make logs"
	addresses
}

addresses() {
	cat <<-END
		The stack is up:
		  http://127.0.0.1:$STACK_EDGE_PORT    Envoy of the proxy edge
		  http://127.0.0.1:$STACK_INNER_PORT    Envoy of the proxy inner
		  http://127.0.0.1:$STACK_API_PORT    REST API, with the token in $STACK_DIR/secrets/api-token

		curl -sS http://127.0.0.1:$STACK_EDGE_PORT/greeting
		curl -sS http://127.0.0.1:$STACK_INNER_PORT/greeting
		curl -sS -i http://127.0.0.1:$STACK_EDGE_PORT/limited    # ten a minute, through both
		curl -sS -H @$STACK_DIR/secrets/api-header http://127.0.0.1:$STACK_API_PORT/status
	END
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
up) up "$@" ;;
down)
	find_compose
	read_settings
	"${compose[@]}" --profile '*' down --remove-orphans "$@" >&2
	log "the stack is down; its volumes, $settings and $STACK_DIR stay"
	;;
logs)
	find_compose
	"${compose[@]}" --profile '*' logs --follow "$@"
	;;
*) fail "usage: hack/stack.sh up|down|logs [ARG...]" ;;
esac
