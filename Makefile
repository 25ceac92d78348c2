# `make help` lists what there is. Everything that a target needs, it brings along.
SHELL := /bin/sh
.DEFAULT_GOAL := help

temporal = $$(tools/temporal.sh)
races = OneOfManyWriters|OneOfManyClients|LastUnit|GenerationsAreRegisters|BackToBack

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## start everything on this machine, show the main job once, stay up until Ctrl-C
	@cli=$(temporal) && ln -sf "$$cli" bin/temporal && BERTH_TEMPORAL_CLI=$$cli exec bin/worker --dev

.PHONY: build
build: ## build bin/worker and bin/starter
	@echo "building bin/worker and bin/starter"
	@go build -o bin/ ./worker ./starter

.PHONY: tools
tools: ## build the temporal CLI, which holds the dev server and the UI
	@mkdir -p bin
	@cli=$(temporal) && ln -sf "$$cli" bin/temporal && echo "bin/temporal is $$cli"

.PHONY: test
test: deps build ## everything: tests with the race detector on real PostgreSQL and Temporal, then lint
	@go build -o bin/teststack ./internal/devstack/teststack
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli bin/teststack -- go test -race -vet off -parallel 4 -timeout 20m ./...
	@$(MAKE) --no-print-directory lint

.PHONY: soak
soak: deps ## 1,000 rounds of the races of 64 writers, and kills in the middle of them; ROUNDS=n for another number
	@cli=$(temporal) && BERTH_TEMPORAL_CLI=$$cli BERTH_TEST_ROUNDS=$${ROUNDS:-1000} \
		go test -count 1 -timeout 120m -v -run '$(races)' ./internal/api/placement ./internal/api/blazar ./internal/store ./internal/torture

.PHONY: bench
bench: deps build ## what a port, a journal entry, an allocation costs, as ratios, into bench.json; BENCH="-h" tells more
	@go build -o bin/ ./bench && exec bin/bench $(BENCH)

.PHONY: lint
lint: ## gofmt, vet, staticcheck, workflowcheck
	@tools/lint.sh

.PHONY: deps
deps: ## install what the tests need on a clean Debian machine
	@tools/deps.sh

.PHONY: clean
clean: ## remove what make built; the data of make run stays
	rm -rf bin
