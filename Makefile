# make run    start the platform with an embedded store on http://127.0.0.1:8080
# make test   all tests, with the race detector where code is concurrent
# make bench  the figures of docs/benchmarks.md, as a table
#             test and bench accept STORE_SERVER=/path/to/kvrocks, to run on that server
# make test262 TEST262=/path  runs ECMAScript's conformance suite from a checkout
# make urlpattern URLPATTERN_DATA=/path  the cases of web-platform-tests for URLPattern
# make compat  packages of npm in the sandbox, compared with Node.js; needs node, npm and a network
# make lint   golangci-lint, and the messages of workers (make lint-proto)
# make proto  generates the code of api/worker/v1, and of the workers in sdk/
# make build  bin/sous; with the console if npm is installed, or CONSOLE=yes or no
# make release  dist/: archives, Debian packages, an SBOM and checksums of a release
# make upgrade-records  the records of a release, for the test of upgrades: docs/upgrade.md

GO            ?= go
GOLANGCI_LINT ?= v2.15.0
BUF           ?= v1.75.0
# The version to stamp; without it, the binary is a development version of the next release.
VERSION       ?=
LDFLAGS       := -s -w -X github.com/codesous/sous/cmd/sous/internal/build.version=$(VERSION)
# The folder of the binaries, and that of a release.
BIN           ?= bin
DIST          ?= dist

# Whether make build embeds the console: yes, no, or auto, which does if npm is installed.
CONSOLE ?= auto

# The architectures of a release.
RELEASE_ARCHS ?= amd64 arm64

# The store server of tests and benchmarks; empty for the redis-server of the PATH.
STORE_SERVER ?=

export CGO_ENABLED ?= 0
export SOUS_TEST_STORE_SERVER := $(STORE_SERVER)

.PHONY: all run build lint-console release upgrade-records test test-packages test-cadence test-python-client test-python-worker test-platform test-redis test-npm test-chromium test-spin bench test262 urlpattern compat lint lint-proto proto proto-baseline fuzz fmt clean

all: build

# The sandbox child goes into the binary: see cmd/sous/internal/server/sandbox_embedded.go, and
# the console: see controlplane/console/embedded.go. The overlay presents them to the compiler as
# files of these packages. GOOS and GOARCH choose another platform.
build:
	mkdir -p $(BIN)
	GO='$(GO)' CONSOLE='$(CONSOLE)' tools/build-console.sh $(BIN)
	$(GO) build -trimpath -ldflags '-s -w' -o $(BIN)/sandbox-child ./invoker/sandbox/childmain
	GOOS= GOARCH= $(GO) run ./tools/compress <$(BIN)/sandbox-child >$(BIN)/sandbox-child.zst
	echo '{"Replace": {"$(CURDIR)/cmd/sous/internal/server/sandbox-child.zst": "$(BIN)/sandbox-child.zst"'"$$(test -f $(BIN)/console.zip && echo ', "$(CURDIR)/controlplane/console/console.zip": "$(BIN)/console.zip"')"'}}' >$(BIN)/overlay.json
	$(GO) build -trimpath -overlay $(BIN)/overlay.json -tags sandboxchild$$(test -f $(BIN)/console.zip && echo ,console) -ldflags '$(LDFLAGS)' -o $(BIN)/sous ./cmd/sous

release:
	GO='$(GO)' MAKE='$(MAKE)' RELEASE_ARCHS='$(RELEASE_ARCHS)' tools/release.sh '$(DIST)'

upgrade-records: test-redis
	@test -n "$(RELEASE)" -a -n "$(BINARY)" || { echo "usage: make upgrade-records RELEASE=1.2.3 BINARY=/path/to/sous"; exit 2; }
	SOUS_UPGRADE_BINARY="$(abspath $(BINARY))" SOUS_UPGRADE_FOLDER="$(CURDIR)/cmd/sous/upgradetest/testdata/$(RELEASE)" \
	$(GO) test ./cmd/sous/upgradetest -run TestWriteRecords -count 1 -v

run: build
	./bin/sous dev

test-redis:
	./tools/need-redis.sh

# For the packages of examples, the tests of the OpenAPI document, and the worker in TypeScript.
test-npm:
	./tools/need-npm.sh

# For the Python client of the OpenAPI document.
test-python-client:
	./tools/need-python-client.sh

# For the worker in Python.
test-python-worker:
	./tools/need-python-worker.sh

# For the site of the documentation.
test-chromium:
	./tools/need-chromium.sh

# For the models of tools/models.
test-spin:
	./tools/need-spin.sh

# The first build of the Cadence server takes minutes, which would count for a test otherwise.
test-cadence:
	$(GO) test -trimpath -vet=off -timeout 30m ./cadenceworker/cadencetest -run TestProgram

# -race needs cgo for the test binaries; the sandbox children that they start are
# built without it (see docs/sandbox.md).
# The Lua interpreter of the embedded store is built without the race detector: the
# store runs one script at a time, and with it scripts would take most of the time. SQLite is
# code in one piece, made from C, and takes six times as long with it.
# -vet=off: make lint runs all analyzers of go vet.
RACE := -race -vet=off '-gcflags=github.com/yuin/gopher-lua/...=-race=false' '-gcflags=modernc.org/sqlite/lib=-race=false'

test: test-packages
	$(MAKE) test-platform

# These packages drive the program that they build, or examine files. Without the race detector
# they share go's build cache with it.
PLAIN := ./cmd/sous ./cmd/sous/compattest ./cmd/sous/consoletest ./cmd/sous/docstest ./cmd/sous/openapitest ./cmd/sous/upgradetest ./deploy ./docs ./examples/... ./sdk ./tools/...

test-packages: test-redis test-npm test-python-client test-python-worker test-chromium test-spin test-cadence
	$(GO) test -trimpath -vet=off -timeout 14m $(PLAIN)
	CGO_ENABLED=1 $(GO) test $(RACE) -timeout 14m $$($(GO) list ./... | grep -v platformtest | grep -vxF "$$($(GO) list $(PLAIN))")

# platformtest runs alone: it requires answers within a time, beside hostile functions. All that it
# examines happens in programs that it starts, so it has no use for the race detector.
test-platform: test-redis test-cadence
	$(GO) test -trimpath -vet=off -timeout 14m ./cmd/sous/platformtest

# The packages stay in tools/compat/node_modules, where bench finds them too.
compat:
	npm ci --prefix tools/compat --ignore-scripts --no-audit --no-fund
	$(GO) test -count=1 -v -timeout 60m ./cmd/sous/compattest

bench: test-redis build
	$(GO) run ./cmd/sousbench -sous bin/sous -store-server "$(STORE_SERVER)"

# TEST262_ONLY takes a part of the paths; the failures go to TEST262_FAILURES.
TEST262_FAILURES ?= bin/test262-failures.txt

test262:
	@test -n "$(TEST262)" || { echo "usage: make test262 TEST262=/path/to/a/checkout/of/test262"; exit 2; }
	mkdir -p bin
	TEST262="$(abspath $(TEST262))" TEST262_FAILURES="$(abspath $(TEST262_FAILURES))" \
	$(GO) test ./tools/test262 -run TestConformance -count 1 -timeout 2h -v

urlpattern:
	@test -n "$(URLPATTERN_DATA)" || { echo "usage: make urlpattern URLPATTERN_DATA=/path/to/urlpatterntestdata.json"; exit 2; }
	URLPATTERN_DATA="$(abspath $(URLPATTERN_DATA))" $(GO) test ./invoker/sandbox/child -run TestURLPatternPublicData -count 1 -v

# The linter's govet has all analyzers of go vet. -trimpath as in make build, so that
# both share go's build cache.
lint: lint-proto lint-console
	GOFLAGS="$$($(GO) env GOFLAGS) -trimpath" \
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT) run ./...

BUF_RUN = GOFLAGS= $(GO) run github.com/bufbuild/buf/cmd/buf@$(BUF)

# The types of the console.
lint-console: test-npm console/node_modules
	npm run --prefix console --silent check

console/node_modules: console/package-lock.json
	npm ci --prefix console --ignore-scripts --no-audit --no-fund
	touch $@

# The messages of workers: their style, that a change breaks no client of the last release, and that
# the generated code is theirs.
lint-proto: test-npm sdk/typescript/node_modules
	$(BUF_RUN) lint
	$(BUF_RUN) breaking --against api/worker/v1/baseline.binpb
	$(BUF_RUN) generate -o $(BIN)/proto
	diff $(BIN)/proto/api/worker/v1/worker.pb.go api/worker/v1/worker.pb.go
	diff -r $(BIN)/proto/api/worker/v1/workerv1connect api/worker/v1/workerv1connect
	diff -r $(BIN)/proto/sdk/typescript/src/gen sdk/typescript/src/gen
	$(BUF_RUN) build --exclude-source-info -o - | cmp - sdk/python/code_sous/worker.binpb

proto: sdk/typescript/node_modules
	$(BUF_RUN) generate
	$(BUF_RUN) build --exclude-source-info -o sdk/python/code_sous/worker.binpb

# The generator of the messages in TypeScript, and the packages of the worker.
sdk/typescript/node_modules: sdk/typescript/package-lock.json
	npm ci --prefix sdk/typescript --ignore-scripts --no-audit --no-fund
	touch $@

# At a release: from then on, changes are compared with its messages.
proto-baseline:
	$(BUF_RUN) build -o api/worker/v1/baseline.binpb

# Every fuzz target for FUZZTIME, one after another.
fuzz:
	FUZZTIME=$(or $(FUZZTIME),1m) tools/fuzz.sh

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf bin dist
