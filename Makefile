# `make help` lists the targets. Each target installs or builds what it needs.
SHELL := /bin/sh
.DEFAULT_GOAL := help
# Go gets the toolchain that go.mod requires, because older ones have known faults.
export GOTOOLCHAIN = auto

temporal = $$(tools/temporal.sh)
# These packages start first, so that no other package waits for them at the end.
slowest = ./internal/torture/kills ./internal/torture/hostile ./internal/torture/leases ./internal/interop ./bench ./internal/api/rpc ./workflows
release = $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)
# The newest release, or the first commit whose schema later versions can migrate.
FROM ?= $(or $(release),dda84ab7)
races = TestRace|EveryEntryHasOneExecution|OneOfManyClients|OneWriterThroughKills|BackToBack|SignalStorm|IsNeverFull

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## start berth, PostgreSQL, Temporal and a stub of OpenDaylight, run the demo, stay up until Ctrl-C
	@cli=$(temporal) && ln -sf "$$cli" bin/temporal && BERTH_TEMPORAL_CLI=$$cli exec bin/worker --dev

.PHONY: build
build: ## build bin/worker and bin/starter
	@echo "building bin/worker and bin/starter"
	@go build -ldflags "$$(tools/ldflags.sh)" -o bin/ ./worker ./starter

.PHONY: tools
tools: ## build bin/temporal: the temporal CLI with the dev server and the UI
	@mkdir -p bin
	@cli=$(temporal) && ln -sf "$$cli" bin/temporal && echo "bin/temporal is $$cli"

# The linker leaves out DWARF data, and GOGC makes garbage collections rare: both save CPU time. Panics and races still name files and lines.
.PHONY: test
test: deps build ## lint, then run all tests with the race detector on real PostgreSQL and Temporal
	@$(MAKE) --no-print-directory lint
	@go build -o bin/teststack ./internal/devstack/teststack
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli GOGC=400 bin/teststack -- tools/test.sh "$(slowest) ./..." \
		-race -vet off -ldflags '-s -w' -p 3 -parallel 4 -timeout 60m

.PHONY: interop-odl
interop-odl: deps ## run the tests with a real OpenDaylight, and compare it with the stub
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli go test -count 1 -timeout 20m -v -run OpenDaylight ./internal/devstack ./internal/interop

.PHONY: interop
interop: deps build ## run OpenStack's test suites with a real Keystone, print a table; TESTS=regexp selects tests
	@go build -o bin/ ./internal/interop/suites
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli BERTH_TEST_PROGRAMS=bin exec bin/suites -run '$(TESTS)'

.PHONY: races
races: deps ## repeat the tests of concurrent writers, killed processes and many signals 1,000 times; ROUNDS=n sets the number
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli BERTH_TEST_ROUNDS=$${ROUNDS:-1000} \
		go test -count 1 -timeout 120m -v -run '$(races)' ./internal/api/placement ./internal/api/blazar ./internal/store/... ./internal/torture/kills ./workflows

.PHONY: soak
soak: deps ## send mixed traffic for an hour, kill a process each minute, and check that nothing grows; DURATION=1h, SEED=n, OUT=file (results.json)
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli BERTH_TEST_DURATION=$${DURATION:-1h} BERTH_TEST_KILL_EVERY=1m BERTH_TEST_SEED=$$SEED \
		BERTH_TEST_OUT=$(abspath $(RESULTS)) \
		go test -count 1 -timeout 24h -v -run TestRandomFaults ./internal/torture/kills

.PHONY: torture
torture: deps ## send mixed traffic while random faults hit every process and server; DURATION=10m, SEED=n repeats a run, FAULTS=all
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli BERTH_TEST_DURATION=$${DURATION:-10m} BERTH_TEST_SEED=$$SEED BERTH_TEST_FAULTS=$$FAULTS \
		go test -count 1 -timeout 24h -v -run TestRandomFaults ./internal/torture/kills

.PHONY: upgrade-test
upgrade-test: deps ## replace the version FROM by this one and go back, under load and with kills; FROM=commit or tag, DURATION=5m, SEED=n
	@echo "building the programs of $(FROM)" && tools/previous.sh $(FROM) bin/previous
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli BERTH_TEST_PREVIOUS=$(CURDIR)/bin/previous BERTH_TEST_DURATION=$${DURATION:-5m} \
		BERTH_TEST_SEED=$$SEED go test -count 1 -timeout 24h -v -run TestRollingUpgrade ./internal/torture/kills

.PHONY: install-test
# The newest release, or the first commit whose packages have manual pages.
install-test: FROM = $(or $(release),4f5dfa77)
install-test: deps ## install the Debian packages in a new Debian root, upgrade under load, go back, back up, restore, remove; needs root
	@tools/deps.sh mmdebstrap
	@echo "building two releases" && tools/previous.sh $(FROM) bin/previous
	@VERSION=0.0.1 tools/release.sh -a $$(dpkg --print-architecture) -p bin/previous -o bin/releases/old
	@VERSION=0.0.2 tools/release.sh -a $$(dpkg --print-architecture) -o bin/releases/new
	@tools/install-test.sh bin/releases/old bin/releases/new

.PHONY: fuzz
fuzz: deps ## let Go's fuzzer try random inputs on each parser; TIME=1m sets the time for each
	@tools/fuzz.sh $${TIME:-1m}

RESULTS = $(or $(OUT),results.json)

.PHONY: bench-all
bench-all: ## run all measurements, one after the other, into one file; takes more than an hour; OUT=file (results.json)
	@for part in bench bench-peers bench-costs bench-failover bench-hosts bench-hosts-slow bench-growth; do $(MAKE) $$part || failed="$$failed $$part"; done; \
		if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

.PHONY: bench
bench: deps build ## measure ports, journal entries, leases and allocations; OUT=file (results.json), BENCH="-h" lists the options
	@go build -o bin/ ./bench && exec bin/bench -out "$(RESULTS)" $(BENCH)

.PHONY: bench-peers
bench-peers: deps build ## measure berth and OpenStack Placement with the same requests; OUT=file (results.json), BENCH="-h" lists the options
	@python=$$(tools/venv.sh placement) && go build -o bin/ ./bench/peer && exec bin/peer -python "$$python" -out "$(RESULTS)" $(BENCH)

.PHONY: bench-costs
bench-costs: deps build ## measure the CPU time of an operation in each part, and limit the servers to check what it predicts; OUT=file (results.json), BENCH="-h" lists the options
	@go build -o bin/ ./bench/cost && exec bin/cost -out "$(RESULTS)" $(BENCH)

.PHONY: bench-failover
bench-failover: deps build ## measure what clients see while PostgreSQL fails over; OUT=file (results.json), BENCH="-h" lists the options
	@go build -o bin/ ./bench/failover && exec bin/failover -out "$(RESULTS)" $(BENCH)

.PHONY: bench-growth
bench-growth: deps build ## measure how times, memory and storage grow with the rows; SIZES=1000,10000, OUT=file (results.json), BENCH="-h" lists the options
	@go build -o bin/ ./bench/growth && exec bin/growth $(if $(SIZES),-sizes "$(SIZES)") -out "$(RESULTS)" $(BENCH)

.PHONY: bench-hosts
bench-hosts: deps build ## measure whether berth keeps up with the agents and new ports of many hosts; HOSTS=1000,10000, OUT=file (results.json), BENCH="-h" lists the options
	@go build -o bin/ ./bench/hosts && exec bin/hosts $(if $(HOSTS),-hosts "$(HOSTS)") -out "$(RESULTS)" $(BENCH)

.PHONY: bench-hosts-slow
bench-hosts-slow: ## measure 100,000 hosts with fewer heartbeats and new ports than bench-hosts; OUT=file (results.json)
	@$(MAKE) bench-hosts HOSTS=100000 BENCH="-key hosts_slow -interval 60s -ports-per-host-hour 0.25"

.PHONY: charts
charts: ## draw the measured curves of the documentation into docs/images
	@go -C tools/charts run . -results "$(CURDIR)/bench/testdata/results.json" -out "$(CURDIR)/docs/images"

.PHONY: vendor
vendor: ## refresh the files from npm in the console, and check them against npm's integrity hashes; needs npm; CHECK=-n only checks
	@tools/vendor.sh $(CHECK)

.PHONY: screenshots
screenshots: ## draw the pages of the console for the documentation with Chromium, into docs/images
	@go test -count 1 ./internal/api/console -run TestScreenshots -screenshots "$(CURDIR)/docs/images"

.PHONY: docs
docs: ## build the site of the documentation into bin/docs, with search and the references of the APIs and alerts; a dead link fails
	@tools/docs.sh

.PHONY: generate
generate: ## rewrite docs/settings.md from the table of settings, and the import rules in docs/architecture.md
	@go test -count 1 ./internal/config -run SettingsPage -update
	@go test -count 1 ./internal -run ImportTables -update

.PHONY: lint
lint: ## check the Go toolchain, run gofmt, go vet, staticcheck and workflowcheck, and check the licences of all modules
	@tools/lint.sh

.PHONY: sbom
sbom: ## write bin/sbom.json: the Go modules and npm packages in bin/worker and bin/starter with their licences, in the CycloneDX format
	@mkdir -p bin
	@go -C tools/dependencies run . -C "$(CURDIR)" -npm "$(CURDIR)/tools/vendor.txt" sbom ./worker ./starter >bin/sbom.json.new && mv bin/sbom.json.new bin/sbom.json

.PHONY: release
release: ## write the files of a release into dist: programs, packages for Debian, context of the image, SBOM, checksums; VERSION=1.4.0 replaces the tag
	@tools/release.sh

.PHONY: release-check
release-check: ## build the release twice, from two folders and with two caches, and compare the files; ARCHITECTURE=amd64 builds only this one
	@tools/release-check.sh $(ARCHITECTURE)

.PHONY: vuln
vuln: ## look for known vulnerabilities in berth and its tools; needs the network, or GOVULNDB=file:///folder
	@tools/vuln.sh

.PHONY: deps
deps: ## install the packages that the tests need on a clean Debian machine
	@tools/deps.sh

.PHONY: clean
clean: ## remove bin and dist; keeps the data of make run
	rm -rf bin dist
