# Everything that is made, fetched or built goes to bin/. `make` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One set of flags for all that is compiled, so that each package is compiled once. Only the
# race detector (hack/test.sh) needs others.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# The container engine, and the names that docker-compose.yaml uses.
DOCKER ?= docker
IMAGE ?= gatehouse:local
CONTROL_PLANE_IMAGE ?= gatehouse-control-plane:local
ENGINE_IMAGE ?= gatehouse-ratelimit:local
# The upstream's own program; ratelimit/go.mod says which version.
ENGINE := github.com/envoyproxy/ratelimit/src/service_cmd
# Docker Compose; hack/compose/go.mod says which version.
COMPOSE := github.com/docker/compose/v2
COMPOSE_VERSION = $(shell go list -C hack/compose -m -f '{{.Version}}' $(COMPOSE))
# Packages whose specs start no Envoy and no database.
UNIT := ./pkg/core/model/... ./pkg/run/config/... ./pkg/core/ir/... ./pkg/core/compile/... ./pkg/state/status/... ./pkg/diagnostics/explain/... ./pkg/xds/...

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/gatehouse
	go build -ldflags '$(LDFLAGS)' -o bin/gatehouse ./cmd/gatehouse

.PHONY: envoy
envoy: ## fetch the pinned Envoy to bin/envoy
	@hack/envoy.sh

.PHONY: postgres
postgres: ## fetch the PostgreSQL of the tests to bin/postgres
	@hack/postgres.sh >/dev/null

.PHONY: kubernetes
kubernetes: ## build the Kubernetes of the tests (API server, etcd, kubectl, helm) into bin/kubernetes (5 minutes the first time)
	@hack/kubernetes.sh

.PHONY: redis
redis: ## fetch the Redis server of the tests to bin/redis-server
	@hack/redis.sh

.PHONY: ratelimit
ratelimit: ## build the pinned rate-limit engine, bin/ratelimit
	@go build -C ratelimit -ldflags '-s -w' -o ../bin/ratelimit $(ENGINE)
	@go build -C ratelimit -ldflags '-s -w' -o ../bin/ratelimit-health ./health

.PHONY: ratelimit-image
ratelimit-image: ratelimit ## build the image gatehouse-ratelimit:local of the engine (needs docker)
	hack/notices.sh bin/ratelimit bin/notices/ratelimit.txt ratelimit
	chmod 755 bin/ratelimit bin/ratelimit-health # whatever the umask: another user runs it
	$(DOCKER) build --network none -f ratelimit/Dockerfile -t $(ENGINE_IMAGE) --build-arg COMMIT=$(COMMIT) .

# The stack is docker-compose.yaml. IMAGES=local builds what would come from a registry.
IMAGES ?=

.PHONY: up
up: ## start the local stack: control plane, PostgreSQL, Redis, two Envoys, rate-limit engine (PROFILES="oidc observe"; IMAGES=local needs no registry)
	@PROFILES="$(PROFILES)" IMAGES="$(IMAGES)" hack/stack.sh check
	@$(MAKE) --no-print-directory image image-control-plane ratelimit-image
	@PROFILES="$(PROFILES)" IMAGES="$(IMAGES)" hack/stack.sh up

.PHONY: images
images: # build what make up would fetch from a registry
	@hack/images.sh

.PHONY: down
down: ## stop the local stack; its volumes stay (ARGS=--volumes removes them)
	@hack/stack.sh down $(ARGS)

.PHONY: logs
logs: ## follow the logs of the local stack (ARGS="edge inner")
	@hack/stack.sh logs $(ARGS)

.PHONY: compose
compose: ## build the pinned Docker Compose, bin/docker-compose, for machines without its plugin (3 minutes the first time)
	@go build -C hack/compose -ldflags '-s -w -X $(COMPOSE)/internal.Version=$(COMPOSE_VERSION)' -o ../../bin/docker-compose $(COMPOSE)/cmd

.PHONY: dex
dex: # build the pinned identity provider of the stack, bin/dex
	@go build -C hack/dex -ldflags '-s -w' -o ../../bin/dex github.com/dexidp/dex/cmd/dex

.PHONY: schemathesis
schemathesis: ## fetch the API checker of the tests to bin/schemathesis
	@hack/schemathesis.sh

.PHONY: mkdocs
mkdocs: # fetch what builds the site of the documentation, bin/mkdocs
	@hack/mkdocs.sh

.PHONY: docs
docs: mkdocs ## build the site of the documentation in bin/docs/site; the next make build puts it into bin/gatehouse
	@go run ./hack/docs

.PHONY: console
console: ## build the console from console/; commit the bundle, which the next make build puts into bin/gatehouse
	@hack/console.sh

.PHONY: browser
browser: # install Chromium, from Debian, and Playwright, which drive the console in the tests
	@hack/chromium.sh
	@hack/console.sh --packages

.PHONY: console-pictures
console-pictures: build envoy browser ## take the pictures of docs/console again, from the specs of the console
	go test ./test/console -count=1 -pictures

.PHONY: aioquic
aioquic: ## fetch the client of HTTP/3 of the tests to bin/aioquic
	@hack/aioquic.sh

.PHONY: clients
clients: ## fetch the generators of API clients of the tests to bin/clients
	@hack/clients.sh

.PHONY: providers
providers: ## fetch the identity providers of the tests to bin/oidc-provider and bin/glewlwyd
	@hack/oidc-provider.sh
	@hack/glewlwyd.sh

.PHONY: pebble
pebble: ## build the certificate authority of the tests in bin/pebble
	@hack/pebble.sh

.PHONY: valgrind
valgrind: ## fetch Valgrind, which counts the instructions of Envoy, to bin/valgrind
	@hack/valgrind.sh

.PHONY: prometheus
prometheus: ## fetch Prometheus, which runs the alerts and the queries of the dashboards in the tests, to bin/prometheus
	@hack/prometheus.sh

.PHONY: nginx
nginx: ## fetch nginx, whose answers to Ingresses are compared, to bin/nginx
	@hack/nginx.sh

.PHONY: haproxy
haproxy: ## fetch HAProxy, beside which make bench measures, to bin/haproxy
	@hack/haproxy.sh

.PHONY: chromium
chromium: docs envoy providers ## run the specs of HTTPS, logins and the documentation with a headless Chromium from Debian (350 MB, so not in CI)
	@$(MAKE) --no-print-directory build
	@hack/chromium.sh
	go test -tags chromium ./test/clients -count=1 -ginkgo.focus Chromium

.PHONY: test-idp
test-idp: build envoy ## run the specs of logins with Keycloak, too; needs Maven and Java 17 (330 MB and minutes, so not in CI)
	@hack/keycloak.sh
	go test -tags idp ./pkg/testkit ./test/e2e -count=1 -timeout 30m -ginkgo.focus Keycloak

.PHONY: tls-check
tls-check: build envoy clients ## print what the HTTPS listener offers: TLS versions, ciphers, key exchanges, ALPN (seconds)
	go test ./test/clients -count=1 -v -ginkgo.focus 'HTTPS listener offers'

.PHONY: tools
tools: ## build the pinned linter into bin/tools
	@hack/tools.sh

.PHONY: run
run: build envoy ## build, fetch Envoy, and run a gateway with a demo in the foreground
	exec bin/gatehouse standalone --demo

.PHONY: demo-oidc
demo-oidc: build envoy ## run a gateway with a login, its own identity provider and two users, until Ctrl-C (ARGS="--https-port 9443")
	@hack/oidc-provider.sh
	@go build -o bin/demo-oidc ./hack/demo-oidc
	@exec bin/demo-oidc $(ARGS)

.PHONY: notices
notices: build ratelimit ## write bin/notices: the licenses of everything in the images' programs
	hack/notices.sh bin/gatehouse bin/notices/gatehouse.txt . hack/notices/swagger-ui.txt hack/notices/site.txt hack/notices/console.txt
	hack/notices.sh bin/ratelimit bin/notices/ratelimit.txt ratelimit

.PHONY: image-files
image-files: docs envoy ## collect the contents of the images in bin/image
	@$(MAKE) --no-print-directory build
	@hack/image.sh

.PHONY: image
image: image-files ## build gatehouse:local, the gateway with its Envoy in one container (needs docker)
	$(DOCKER) build --network none --target standalone -t $(IMAGE) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) .

.PHONY: image-control-plane
image-control-plane: image-files ## build gatehouse-control-plane:local, the control plane alone (needs docker)
	$(DOCKER) build --network none --target control-plane -t $(CONTROL_PLANE_IMAGE) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) .

.PHONY: release
release: ## build a release in bin/release (make release VERSION=v0.2.0): archives, Debian packages and images for amd64 and arm64, chart, SBOMs, checksums
	@hack/release.sh '$(VERSION)'

# What the specs run, besides bin/gatehouse.
PARTS := build envoy postgres redis ratelimit kubernetes schemathesis mkdocs aioquic clients providers pebble valgrind prometheus haproxy nginx browser

.PHONY: test
test: ## run all tests, with a real Envoy, PostgreSQL, Redis, rate-limit engine, Kubernetes API and identity providers
	@$(MAKE) --no-print-directory -j 4 $(PARTS)
	@hack/test.sh

.PHONY: test-images
test-images: ## build the images and run them in a Docker engine of their own, or in the one at DOCKER_HOST (needs root; minutes)
	@hack/docker.sh run $(MAKE) --no-print-directory test-images-here

.PHONY: test-images-here
test-images-here: image image-control-plane ratelimit compose # in the engine that docker finds; the specs do not wait for a compiler
	go test -tags images ./test/images/... -p 1 -count=1 -timeout 20m -v -exec $(CURDIR)/hack/with-report.sh
	@echo "make test-images: everything passed"

.PHONY: test-cluster
test-cluster: image-files ratelimit redis postgres ## start a real Kubernetes node and run the specs of the cluster on it (needs root; minutes)
	@hack/cluster.sh check
	@hack/cluster-image.sh bin/cluster gatehouse control-plane ratelimit redis postgres echo
	@go test -tags cluster -c -o bin/cluster/specs ./test/cluster
	cd test/cluster && ../../hack/cluster.sh run ../../hack/with-report.sh ../../bin/cluster/specs -test.v -test.timeout 30m $(ARGS)
	@echo "make test-cluster: everything passed"

.PHONY: conformance
conformance: image-files ## run the conformance tests of the Gateway API on a node of Kubernetes (needs root; minutes)
	@hack/cluster.sh check
	@hack/kubernetes.sh all
	@hack/cluster-image.sh bin/conformance gatehouse gateway-api gateway-api-dns
	@go test -C test/conformance -c -o $(CURDIR)/bin/conformance/conformance.test .
	hack/cluster.sh run hack/conformance.sh $(ARGS)

.PHONY: test-upgrade
test-upgrade: build envoy postgres ## update from the version before to this one, and go back, under traffic (a minute)
	@hack/previous.sh
	@hack/kubernetes.sh
	go test -tags upgrade ./test/upgrade -count=1 -timeout 10m -v -exec $(CURDIR)/hack/with-report.sh
	@echo "make test-upgrade: everything passed"

.PHONY: test-systemd
test-systemd: build envoy postgres ## run the units of hack/systemd under systemd in a container of Debian (needs root; 250 MB the first time, so not in CI)
	@hack/systemd.sh

.PHONY: test-unit
test-unit: ## run the tests that start no other programs
	go test $(UNIT)

.PHONY: golden
golden: ## regenerate the golden files and delete stale ones
	go test ./pkg/xds/pipeline -run TestPipeline -count=1 -update

.PHONY: cost
cost: build envoy valgrind ## count what a request costs in Envoy, write the table of docs/performance.md again, and print it (minutes)
	go test ./test/cost -count=1 -timeout 30m -update
	@sed -n '/^| part/,/^<!--/{/^|/p}' docs/performance.md

.PHONY: chart-docs
chart-docs: kubernetes ## regenerate the table of values in the README of the Helm chart
	go test ./test/chart -run TestChart -count=1 -ginkgo.focus 'in its README' -update

.PHONY: pictures
pictures: build ## draw the dashboards again (docs/dashboards), from a minute of traffic
	go test ./test/observe -count=1 -pictures -ginkgo.focus Pictures

.PHONY: metrics-docs
metrics-docs: ## regenerate the table of docs/metrics.md from the descriptions of the metrics
	go test ./pkg/state/metrics -run TestMetrics -count=1 -ginkgo.focus 'a table of all metrics' -update
	go test ./pkg/xds/translate -run TestTranslate -count=1 -ginkgo.focus 'as they describe themselves' -update

.PHONY: crds
crds: ## regenerate the CustomResourceDefinitions and the generated Go code from api/gateway
	@hack/crds.sh

.PHONY: types
types: ## regenerate what repeats pkg/core/model and api/calls.yaml: calls and schemas in openapi.yaml, a table, the CustomResourceDefinitions
	go run ./hack/configtypes
	@hack/crds.sh

.PHONY: endpoints
endpoints: ## regenerate docs/endpoints.md from the specs of the REST API
	go test ./pkg/input/rest -run TestREST -count=1 -update

.PHONY: mutants
mutants: ## break the code in one place at a time, and check that the specs fail (three hours; ARGS="-sample 150", ARGS="plan-3 server pkg/input/rest")
	@go run ./hack/mutants $(ARGS)

.PHONY: profile
profile: build envoy ## show where CPU time and memory go while 5,000 routes are loaded and changed; profiles in bin/profile (ARGS="--routes 50000")
	@hack/profile.sh $(ARGS)

.PHONY: bench
bench: build envoy redis ratelimit haproxy browser ## measure next to a bare go-control-plane, a hand-written Envoy configuration and no rate limit (half an hour; ARGS="--only rps")
	hack/bench.sh $(ARGS)

# A fuzzer that minimizes each input for long finds less.
FUZZ := -run '^$$' -fuzzminimizetime 10x -fuzztime 2m

.PHONY: soak
soak: build envoy postgres redis ratelimit providers pebble ## run the end-to-end specs with a program that looks for races, and longer what make test runs briefly: the simulated Envoy, random changes, explain, the two rate-limit engines and their faults, the tables of attacks, 50 clients, storms of changes, filters in all combinations, floods of handshakes, logins that come and go, the fuzzers (two hours)
	CGO_ENABLED=1 go build -race -o bin/gatehouse-race ./cmd/gatehouse
	GATEHOUSE_TEST_PROGRAM=$(CURDIR)/bin/gatehouse-race go tool ginkgo --vet=off --procs=3 --no-color --succinct --timeout=2h ./test/e2e
	GATEHOUSE_TEST_SEEDS=100000 go test ./pkg/xds/plan -count=1 -timeout 2h -ginkgo.timeout 2h
	GATEHOUSE_TEST_SEEDS=1000 go test ./pkg/xds/pipeline -count=1 -timeout 2h -ginkgo.timeout 2h -ginkgo.focus 'equals the result from scratch'
	GATEHOUSE_TEST_SEEDS=1000 go test ./test/explain -count=1 -timeout 2h -ginkgo.timeout 2h
	GATEHOUSE_TEST_SEEDS=5000 go test ./pkg/input/crd -count=1 -timeout 1h -ginkgo.focus random
	GATEHOUSE_TEST_REQUESTS=20000 go test ./test/ratelimit -count=1 -v -timeout 1h
	GATEHOUSE_TEST_WINDOWS=30 GATEHOUSE_TEST_FAULTS=20 \
		go test ./test/e2e -count=1 -v -timeout 1h -ginkgo.focus 'limit of 5 each second|a fault is handled|limits hold while'
	GATEHOUSE_TEST_ATTACKS=all go test ./test/attack -count=1 -timeout 1h
	GATEHOUSE_TEST_CLIENTS=60s go test ./test/e2e -count=1 -ginkgo.focus '50 clients'
	GATEHOUSE_TEST_STORM=5m GATEHOUSE_TEST_KILLS=50 GATEHOUSE_TEST_CHANGES=1000 GATEHOUSE_TEST_RATIO=1.5 \
		go test ./test/e2e -count=1 -v -timeout 2h -ginkgo.timeout 2h -ginkgo.focus 'A storm of changes|wait=applied|never gets ready|is lost while'
	GATEHOUSE_TEST_HANDSHAKES=10000 GATEHOUSE_TEST_CERTIFICATES=400 GATEHOUSE_TEST_TLS_HOSTS=500 \
		go test ./test/e2e -count=1 -v -timeout 1h -ginkgo.focus 'HTTPS under'
	GATEHOUSE_TEST_POLICY_RATE=1000 GATEHOUSE_TEST_POLICY_SWITCHES=100 go test ./test/policies -count=1 -v -timeout 1h -ginkgo.focus 'under load'
	GATEHOUSE_TEST_KEYS=10000 go test ./test/policies -count=1 -v -timeout 1h -ginkgo.focus 'Many API keys'
	GATEHOUSE_TEST_COMBINATIONS=100000 go test ./test/policies -count=1 -v -timeout 2h -ginkgo.timeout 2h -ginkgo.focus 'combined at random'
	GATEHOUSE_TEST_ACME_HOSTS=200 GATEHOUSE_TEST_RENEWALS=15 go test ./test/e2e -count=1 -v -timeout 1h -ginkgo.focus 'whichever replica dies|valid for seconds'
	GATEHOUSE_TEST_STREAMS=1000 go test ./test/e2e -count=1 -v -timeout 1h -ginkgo.focus 'xDS port that are renewed'
	GATEHOUSE_TEST_LOGINS=400 go test ./test/e2e -count=1 -v -timeout 1h -ginkgo.focus 'Login hosts that are added'
	GATEHOUSE_TEST_TEMPLATES=10000 go test ./test/e2e -count=1 -v -timeout 1h -ginkgo.focus 'Redirects that are made up'
	go test ./pkg/input/rest $(FUZZ) -fuzz '^FuzzBody$$'
	go test ./pkg/input/rest $(FUZZ) -fuzz '^FuzzCursor$$'
	go test ./pkg/input/form $(FUZZ) -fuzz '^FuzzFilter$$'
	go test ./pkg/diagnostics/precheck $(FUZZ) -fuzz '^FuzzRoute$$'
	go test ./pkg/input/document $(FUZZ) -fuzz '^FuzzParse$$'

.PHONY: lint
lint: tools mkdocs ## check the code, its formatting, go.mod, the scripts and the site of the documentation
	@hack/lint.sh

.PHONY: clean
clean: ## remove build results; fetched programs stay
	rm -f bin/gatehouse bin/ratelimit bin/demo-oidc
	go clean -testcache
