#!/usr/bin/env bash
# Runs the local stack, docker-compose.yaml: `make up`, `make down`, `make logs`.
# docs/local-stack.md describes it.
#
# usage: hack/stack.sh check|up|down|logs [ARG...]
#
# check finds out in a second what would stop up later. STACK_ENV names the file with its settings, which the first `up` writes; the default
# is .env at the top of the checkout. PROFILES lists profiles to add: oidc,
# observe. IMAGES says where the images of others come from: public, or local.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$(gatehouse_root)"

docker=${DOCKER:-docker}
settings=${STACK_ENV:-.env}
# The files that this run has written.
changed=
umask 077

# The settings that the environment may change later: no volume depends on them.
ports="STACK_API_PORT STACK_EDGE_PORT STACK_EDGE_TLS_PORT STACK_INNER_PORT STACK_LOGIN_PORT STACK_PROMETHEUS_PORT"

# check_words fails if PROFILES or IMAGES has a word with no meaning.
check_words() {
	local profile
	for profile in ${PROFILES:-}; do
		case $profile in
		oidc | observe) ;;
		*) fail "PROFILES: there is no profile $profile; the profiles are oidc and observe" ;;
		esac
	done
	case ${IMAGES:-} in
	'' | local | public) ;;
	*) fail "IMAGES=$IMAGES: images are local (built here) or public (from their registries)" ;;
	esac
}

# check_docker fails unless there is a client with an engine.
check_docker() {
	local said
	command -v "$docker" >/dev/null 2>&1 ||
		fail "Docker is needed, and there is no program $docker: install Docker Engine (https://docs.docker.com/engine/install/), or name the program with DOCKER"
	said=$("$docker" version --format '{{.Server.Version}}' 2>&1) && return 0
	said=${said##*$'\n'}
	case $said in
	*"permission denied"*) fail "this user may not use the Docker engine: run this as root, or add the user to the group docker ($said)" ;;
	esac
	fail "the Docker engine does not answer: start it (systemctl start docker), or name another one with DOCKER_HOST ($said)"
}

# setting NAME prints a setting before up has written it: that of the environment, of the file, or the default.
setting() {
	local line
	if [[ " $ports " != *" $1 "* && -e "$settings" ]] || [ -z "${!1:-}" ]; then
		line=$(grep "^$1=" "$settings" 2>/dev/null || default_settings | grep "^$1=")
		printf '%s' "${line#*=}"
	else
		printf '%s' "${!1}"
	fi
}

# check_ports fails if another program listens on a port of the stack.
check_ports() {
	local name port own
	own=$("$docker" ps --filter "label=com.docker.compose.project=$(setting STACK_NAME)" --format '{{.Ports}}')
	for name in $ports; do
		case $name in
		STACK_LOGIN_PORT) [[ " ${PROFILES:-} " == *" oidc "* ]] || continue ;;
		STACK_PROMETHEUS_PORT) [[ " ${PROFILES:-} " == *" observe "* ]] || continue ;;
		esac
		port=$(setting "$name")
		[[ "$own" == *"127.0.0.1:$port->"* ]] && continue
		if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			fail "port $port ($name) is used by another program: stop that, or choose another port, as in $name=$((port + 1000)) make up"
		fi
	done
}

# find_compose sets compose to the command that runs Docker Compose.
find_compose() {
	if "$docker" compose version >/dev/null 2>&1; then
		compose=("$docker" compose)
	else
		if [ ! -x bin/docker-compose ]; then
			log "Docker has no Compose here: building bin/docker-compose, which takes some minutes"
			make --no-print-directory compose >&2
		fi
		compose=(bin/docker-compose)
	fi
	compose+=(--env-file "$settings" --project-directory . -f docker-compose.yaml)
	export COMPOSE_PROGRESS=quiet
}

random() {
	openssl rand -hex 24
}

# default_settings prints every setting. The environment overrides values that are not random.
default_settings() {
	cat <<-END
		STACK_NAME=${STACK_NAME:-gatehouse}
		STACK_DIR=${STACK_DIR:-$PWD/.stack}
		STACK_API_PORT=${STACK_API_PORT:-1323}
		STACK_EDGE_PORT=${STACK_EDGE_PORT:-8080}
		STACK_EDGE_TLS_PORT=${STACK_EDGE_TLS_PORT:-8443}
		STACK_INNER_PORT=${STACK_INNER_PORT:-8081}
		STACK_LOGIN_PORT=${STACK_LOGIN_PORT:-5556}
		STACK_PROMETHEUS_PORT=${STACK_PROMETHEUS_PORT:-9090}
		STACK_IMAGES=${IMAGES:-public}
		POSTGRES_PASSWORD=$(random)
		API_TOKEN=gh_$(random)
		DEX_DATABASE_PASSWORD=$(random)
		LOGIN_PASSWORD=$(random)
		LOGIN_CLIENT_SECRET=$(random)
		LOGIN_COOKIE_SECRET=$(random)
	END
}

# write_settings writes the file of settings, or adds missing settings to it.
write_settings() {
	local volume line
	if [ ! -e "$settings" ]; then
		volume=${STACK_NAME:-gatehouse}_postgres
		[ -z "$("$docker" volume ls --quiet --filter "name=^$volume$")" ] ||
			fail "$settings is missing, and the volume $volume has a database whose password was in it: put the file back, or remove the volumes that $docker volume ls shows for ${STACK_NAME:-gatehouse}, then try again"
		cat >"$settings" <<-END
			# Settings and secrets of the local stack, written by make up (docs/local-stack.md). Its
			# volumes need them: keep this file as long as them. Whoever can read it can change
			# everything; a password that is changed here is not changed in the database.
		END
		log "wrote $settings, with new passwords"
	fi
	while IFS= read -r line; do
		grep -q "^${line%%=*}=" "$settings" || printf '%s\n' "$line" >>"$settings"
	done < <(default_settings)
	for line in $ports; do
		change_setting "$line" "${!line:-}"
	done
	change_setting STACK_IMAGES "${IMAGES:-}"
}

# change_setting NAME VALUE changes a setting in the file, unless the value is empty.
change_setting() {
	if [ -n "$2" ] && ! grep -qxF "$1=$2" "$settings"; then
		sed -i "s|^$1=.*|$1=$2|" "$settings"
		log "$settings has $1=$2 now"
	fi
}

# read_settings sets the variables of the file.
read_settings() {
	[ -e "$settings" ] || fail "$settings is missing: the stack was never started here, or it was started with another STACK_ENV"
	set -a
	# shellcheck disable=SC1090
	. "$(realpath "$settings")"
	set +a
	# Prometheus reads Envoy's statistics at its admin port, which is otherwise closed.
	unset STACK_ADMIN_SOCKET STACK_ADMIN_ADDR
	case " ${PROFILES:-} " in
	*" observe "*) export STACK_ADMIN_SOCKET='' STACK_ADMIN_ADDR=0.0.0.0:9001 ;;
	esac
	name_images
}

# name_images sets the names of the images of others: those of hack/images/public.txt, with their digests, or the names
# of the stand-ins, which are no public names.
name_images() {
	local name image digest
	while read -r name image digest; do
		[ "$STACK_IMAGES" = public ] || image=$(hack/images.sh --name "$name") digest=
		export "STACK_IMAGE_${name^^}=$image${digest:+@$digest}"
	done < <(grep -v '^#' hack/images/public.txt)
}

# put FILE writes its input in one step, unless the file has it. The containers run as users of
# their own: the directory above blocks those of this machine.
put() {
	cat >"$1.new"
	if cmp -s "$1.new" "$1"; then
		rm "$1.new"
		return 0
	fi
	chmod 0444 "$1.new"
	mv -f "$1.new" "$1"
	changed+=" $1"
}

# make_directories creates the directories of the files for the containers.
make_directories() {
	local dir
	mkdir -p "$STACK_DIR"
	chmod 0700 "$STACK_DIR"
	for dir in secrets config tls tls/gatehouse tls/edge tls/inner tls/ratelimit tls/redis tls/dex; do
		mkdir -p "$STACK_DIR/$dir"
		chmod 0755 "$STACK_DIR/$dir"
	done
}

# authority NAME makes an authority, or renews certificates that expire soon.
authority() {
	local dir=$STACK_DIR/pki/$1
	mkdir -p "$STACK_DIR/pki"
	if [ -e "$dir/ca.crt" ]; then
		bin/gatehouse pki renew "$dir" >/dev/null
	else
		bin/gatehouse pki init "$dir" >/dev/null
	fi
}

# certificate AUTHORITY FILE WHAT [ARG...] issues FILE.crt, unless it exists.
certificate() {
	local dir=$STACK_DIR/pki/$1 file=$2
	shift 2
	[ -e "$dir/$file.crt" ] || bin/gatehouse pki issue "$dir" "$@" --file "$file" >/dev/null
}

# give AUTHORITY FILE DIR copies a pair, the authority and its revocation list into DIR: the
# certificate last, as programs that watch the files expect.
give() {
	local from=$STACK_DIR/pki/$1 to=$STACK_DIR/tls/$3
	put "$to/ca.crt" <"$from/ca.crt"
	put "$to/ca.crl" <"$from/ca.crl"
	put "$to/tls.key" <"$from/$2.key"
	put "$to/tls.crt" <"$from/$2.crt"
}

# make_certificates makes three authorities, each for one purpose only.
make_certificates() {
	authority xds # the control plane, and its Envoys and rate-limit engine
	certificate xds server server --host gatehouse
	certificate xds edge proxy edge
	certificate xds inner proxy inner
	certificate xds ratelimit ratelimit
	give xds server gatehouse
	give xds edge edge
	give xds inner inner
	give xds ratelimit ratelimit
	authority redis # Redis, and the engine as its client
	certificate redis server server --host redis
	certificate redis ratelimit ratelimit
	give redis server redis
	put "$STACK_DIR/tls/ratelimit/redis-ca.crt" <"$STACK_DIR/pki/redis/ca.crt"
	put "$STACK_DIR/tls/ratelimit/redis.key" <"$STACK_DIR/pki/redis/ratelimit.key"
	put "$STACK_DIR/tls/ratelimit/redis.crt" <"$STACK_DIR/pki/redis/ratelimit.crt"
	authority web # what browsers see
	certificate web app server --host app.stack.test
	certificate web login server --host login.stack.test
	give web login dex
}

# write_files writes the files for the containers.
write_files() {
	local file
	make_directories
	make_certificates
	printf '%s' "$POSTGRES_PASSWORD" | put "$STACK_DIR/secrets/postgres-password"
	printf 'postgres:5432:gatehouse:gatehouse:%s\n' "$POSTGRES_PASSWORD" | put "$STACK_DIR/secrets/pgpass"
	printf '%s\n' "$API_TOKEN" | put "$STACK_DIR/secrets/api-token"
	printf 'Authorization: Bearer %s\n' "$API_TOKEN" | put "$STACK_DIR/secrets/api-header"
	for file in nginx.conf gateway.yaml prometheus.yml; do
		put "$STACK_DIR/config/$file" <"hack/stack/$file"
	done
	put "$STACK_DIR/config/alerts.yaml" <charts/gatehouse/files/alerts.yaml
}

# api PATH [CURL ARG...] prints the answer of the REST API.
api() {
	local path=$1
	shift
	curl -sS -f -H "@$STACK_DIR/secrets/api-header" "$@" "http://127.0.0.1:$STACK_API_PORT$path"
}

# apply FILE applies a document of hack/stack.
apply() {
	"${compose[@]}" run --rm --no-deps -T configure apply --output table -f "/etc/gatehouse/$1" >&2
}

# configure applies the first configuration to an empty database.
configure() {
	local proxies
	proxies=$(api /proxy) || fail "the REST API at 127.0.0.1:$STACK_API_PORT does not answer; look at make logs"
	case $proxies in
	*'_proxy":[]}}') apply gateway.yaml ;;
	*) log "the database has proxies: hack/stack/gateway.yaml is not applied" ;;
	esac
}

# make_dex_database creates the database of the OpenID provider: a provider that loses its keys
# locks everybody out until the gateway fetches the new ones.
make_dex_database() {
	"${compose[@]}" exec -T postgres psql --quiet --username gatehouse --dbname gatehouse --set ON_ERROR_STOP=1 >/dev/null <<-END ||
		SELECT 'CREATE ROLE dex LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'dex') \\gexec
		ALTER ROLE dex PASSWORD '$DEX_DATABASE_PASSWORD';
		SELECT 'CREATE DATABASE dex OWNER dex' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'dex') \\gexec
	END
		fail "PostgreSQL made no database for the OpenID provider; look at make logs"
}

# write_dex writes the configuration of the OpenID provider, with one client and one user.
write_dex() {
	local hash
	hash=$(printf '%s' "$LOGIN_PASSWORD" | go run -C hack/dex ./hash) || fail "the password of the provider's user could not be hashed"
	put "$STACK_DIR/secrets/dex.yaml" <<-END
		issuer: https://login.stack.test:$STACK_LOGIN_PORT
		storage:
		  type: postgres
		  config: {host: postgres, database: dex, user: dex, password: $DEX_DATABASE_PASSWORD, ssl: {mode: disable}}
		web:
		  https: 0.0.0.0:$STACK_LOGIN_PORT
		  tlsCert: /run/tls/tls.crt
		  tlsKey: /run/tls/tls.key
		telemetry: {http: 127.0.0.1:5558}
		oauth2: {skipApprovalScreen: true}
		enablePasswordDB: true
		staticClients:
		- id: app
		  name: The application of the local stack
		  secret: $LOGIN_CLIENT_SECRET
		  redirectURIs: ['https://app.stack.test:$STACK_EDGE_TLS_PORT/callback']
		staticPasswords:
		- email: user@stack.test
		  username: user
		  userID: 4d9d1f7a-local-stack
		  hash: '$hash'
	END
}

# secret NAME ARG... stores a secret in the gateway.
secret() {
	bin/gatehouse secret set "$@" --server "http://127.0.0.1:$STACK_API_PORT" --token-file "$STACK_DIR/secrets/api-token" >/dev/null
}

# configure_login creates the service that requires a login, unless it exists.
configure_login() {
	if api /service/app >/dev/null 2>&1; then
		return 0
	fi
	secret login-ca --cert "$STACK_DIR/pki/web/ca.crt"
	secret app --cert "$STACK_DIR/pki/web/app.crt" --key "$STACK_DIR/pki/web/app.key"
	printf '%s' "$LOGIN_CLIENT_SECRET" | secret login-client --value -
	printf '%s' "$LOGIN_COOKIE_SECRET" | secret login-cookies --value -
	sed "s/LOGIN_PORT$/$STACK_LOGIN_PORT/" hack/stack/oidc.yaml | put "$STACK_DIR/config/oidc.yaml"
	apply oidc.yaml
	api '/proxy/edge/service/app?wait=applied' -X POST >/dev/null
}

# token_of_prometheus creates a viewer's token, unless a working one exists.
token_of_prometheus() {
	local file=$STACK_DIR/secrets/prometheus-token answer
	if [ -e "$file" ] && curl -sS -f -o /dev/null -H @<(printf 'Authorization: Bearer %s\n' "$(cat "$file")") "http://127.0.0.1:$STACK_API_PORT/metrics" 2>/dev/null; then
		return 0
	fi
	api /token/prometheus -X DELETE >/dev/null 2>&1 || true
	answer=$(api /token -d Token_name=prometheus -d Token_role=viewer) || fail "the REST API made no token for Prometheus; look at make logs"
	sed 's/.*"token":"\([^"]*\)".*/\1/' <<<"$answer" | put "$file"
}

# restart_readers SERVICE... restarts those of the running services that read their certificates
# only when they start, if these are new.
restart_readers() {
	local service
	for service in redis ratelimit dex; do
		case " $* " in *" $service "*) ;; *) continue ;; esac
		case $changed in *"/tls/$service/"*) "${compose[@]}" restart "$service" >&2 ;; esac
	done
}

check() {
	check_words
	check_docker
	check_ports
}

up() {
	local profile running
	check
	find_compose
	write_settings
	read_settings
	[ "$STACK_IMAGES" = public ] || hack/images.sh
	running=$("${compose[@]}" --profile '*' ps --services --status running | tr '\n' ' ')
	write_files
	"${compose[@]}" up --detach --wait --wait-timeout 180 gatehouse >&2 || fail "the control plane did not start; look at make logs"
	configure
	for profile in ${PROFILES:-}; do
		compose+=(--profile "$profile")
		case $profile in
		oidc)
			make_dex_database
			write_dex
			;;
		observe) token_of_prometheus ;;
		esac
	done
	"${compose[@]}" up --detach --wait --wait-timeout 180 >&2 || fail "the stack did not start; look at make logs"
	# Words, one for each service.
	# shellcheck disable=SC2086
	restart_readers $running
	case " ${PROFILES:-} " in
	*" oidc "*) configure_login ;;
	esac
	addresses
}

addresses() {
	cat <<-END
		The stack is up:
		  http://127.0.0.1:$STACK_EDGE_PORT    Envoy of the proxy edge
		  http://127.0.0.1:$STACK_INNER_PORT    Envoy of the proxy inner
		  http://127.0.0.1:$STACK_API_PORT    REST API, with the token in $STACK_DIR/secrets/api-token
	END
	case " ${PROFILES:-} " in *" observe "*) echo "  http://127.0.0.1:$STACK_PROMETHEUS_PORT    Prometheus" ;; esac
	case " ${PROFILES:-} " in *" oidc "*) cat <<-END ;;
		  https://app.stack.test:$STACK_EDGE_TLS_PORT    asks for a login: user@stack.test, with LOGIN_PASSWORD of $settings
		    It needs the line "127.0.0.1 app.stack.test login.stack.test" in /etc/hosts, and a browser that
		    trusts $STACK_DIR/pki/web/ca.crt.
	END
	esac
	cat <<-END

		curl -sS http://127.0.0.1:$STACK_EDGE_PORT/greeting
		curl -sS http://127.0.0.1:$STACK_INNER_PORT/greeting
		curl -sS -i http://127.0.0.1:$STACK_EDGE_PORT/limited    # ten a minute, through both
		curl -sS -H @$STACK_DIR/secrets/api-header http://127.0.0.1:$STACK_API_PORT/status
	END
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
check) check ;;
up) up ;;
down)
	check_docker
	find_compose
	read_settings
	"${compose[@]}" --profile '*' down --remove-orphans "$@" >&2
	case " $* " in
	*" --volumes "* | *" -v "*) log "the stack is down, and its volumes are removed; $settings and $STACK_DIR stay, and the next make up uses their passwords" ;;
	*) log "the stack is down; its volumes, $settings and $STACK_DIR stay" ;;
	esac
	;;
logs)
	check_docker
	find_compose
	read_settings
	"${compose[@]}" --profile '*' logs --follow "$@"
	;;
*) fail "usage: hack/stack.sh check|up|down|logs [ARG...]" ;;
esac
