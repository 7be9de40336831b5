# Each target prints what it runs. The nested modules have dependencies that importers
# of the package do not need.
MODULES := $(patsubst %/,%,$(sort $(dir $(wildcard go.mod */go.mod */*/go.mod */*/*/go.mod */*/*/*/go.mod))))
PACKAGE := github.com/token-ramp/ramp-go
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
FUZZTIME ?= 10s

# The releases of Go with which the package is tested. make long also tests them with the
# version of encoding/json that is not their default.
RELEASES := go1.25.14 go1.26.8 go1.27.4
OTHER_JSON := go1.26.8+jsonv2 go1.27.4+nojsonv2

# What make test runs, and what only make test-all does, the longest first. TESTFLAGS=-race is not for the
# documents, of which nothing overlaps here, nor for the rest: it would compile a node and frameworks once more.
# The packages of the module $(SUITES) are tested each by itself, so that one has the race detector.
SUITES := internal/test/integration
NEWEST := internal/test/newest
CORE := $(SUITES)/dbtest . examples/gameserver
WITHOUT := $(SUITES)/doctest
STORES := examples/stores
LONG := $(SUITES)/pairs $(SUITES)/copytest $(SUITES)/judgetest $(SUITES)/browsertest $(NEWEST) $(SUITES)/hosttest
ALL := $(filter-out $(SUITES),$(MODULES)) $(filter-out %.mod %.sum,$(wildcard $(SUITES)/*))
REST := $(LONG) $(filter-out $(CORE) $(WITHOUT) $(STORES) $(LONG),$(sort $(ALL)))
TESTFLAGS ?=
SHORT := -short

# If garbage is collected less often, the compiler needs a seventh less of the processor.
releases fuzz: export GOGC = 400

.PHONY: test test-all check vuln releases fuzz long bench cover

# Test what a change usually touches: the package, the emulator, the judge, the example
# server, the stores on SQLite and the documents. The few tests that take longest are
# left to test-all.
test:
	go run ./internal/test/testrun $(SHORT) $(TESTFLAGS) $(CORE) -- $(WITHOUT)

# Also run the longest tests, and test every other module: frameworks, metrics, more
# stores, nodes, browsers and benchmarks. Databases are tested if internal/test/databases
# runs it.
test-all: SHORT =
test-all: CORE += $(STORES)
test-all: WITHOUT += $(REST)
test-all: test
	@PATH=$$PATH:/usr/sbin; for p in nginx haproxy sqlite3 promtool mtail pgbouncer softhsm2-util hledger soffice \
		node python3 chromium; do \
		command -v $$p >/dev/null || echo "NOT TESTED: what needs $$p, because it is not installed"; done
	@for d in $(NEWEST)/nodetest $(SUITES)/browsertest examples/express; do test -d $$d/node_modules || \
		echo "NOT TESTED: what $$d/package.json installs: run npm install --prefix $$d"; done
	@for e in RAMP_TEST_POSTGRESQL RAMP_TEST_MYSQL RAMP_TEST_REDIS; do \
		printenv $$e >/dev/null || echo "NOT TESTED, because $$e is not set: run internal/test/databases make test-all"; done

# Check the workflows with actionlint, every module with go mod tidy, and all modules with golangci-lint in one
# workspace, so that it reads once what they share. .golangci.yml has its checks.
check:
	go run $(ACTIONLINT)
	set -e; for m in $(MODULES); do \
		go -C $$m mod tidy -diff || { echo "*** $$m/go.mod or go.sum is not tidy: run go -C $$m mod tidy ***" >&2; exit 1; }; done
	set -e; all=$$(mktemp -d); trap 'rm -rf "$$all"' EXIT; (cd "$$all"; go work init $(abspath $(MODULES))); \
		GOWORK=$$all/go.work go run $(GOLANGCI) run $(MODULES:%=./%/...)

# Look for known vulnerabilities in what importers and copies get, if the database of
# vulnerabilities can be reached. With REQUIRED=1, as in the workflows, it must be reached.
REQUIRED ?=
vuln:
	@curl -sf -m 20 -o /dev/null https://vuln.go.dev/index/db.json || \
		{ echo "NOT CHECKED for known vulnerabilities: vuln.go.dev cannot be reached"; exit $(or $(REQUIRED),0); }; \
	set -ex; for m in . examples/gameserver examples/keys; do (cd $$m && go run $(GOVULNCHECK) ./...); done

# Test the package with every release of Go but the one in use, which make test tests. The newest, also if it
# is in use, is tested with the newest go-ethereum, which $(NEWEST) requires. The other targets test the
# package with the oldest, which go.mod requires. All must read and write the same. The longest tests, of pure
# rules, and those of the emulator are run with the newest only. Everything must build with the others, and the
# workflows run all tests with each. The go command downloads missing releases through the module proxy. Vet,
# which make check runs, would read the whole standard library of each.
releases:
	set -e; here=$$(go env GOVERSION); for r in $(RELEASES); do \
		module=. short=-short; [ "$$r" != $(lastword $(RELEASES)) ] || module=$(NEWEST) short=; \
		[ "$$r $$module" != "$$here ." ] || { echo "$$r: make test tests it"; continue; }; \
		export GOTOOLCHAIN=$${r%%+*}; \
		case $$r in *+*) export GOEXPERIMENT=$${r#*+};; *) unset GOEXPERIMENT;; esac; \
		echo "$$r:"; go version || { echo "*** NOT TESTED on $$r, because the release could not be fetched ***" >&2; exit 1; }; \
		go -C $$module list -m -f '{{.Path}} {{.Version}}' github.com/ethereum/go-ethereum; \
		go -C $$module test -vet=off $$short $(PACKAGE) $(PACKAGE)/rampsql; \
		case $$r in $(lastword $(RELEASES))) go -C $$module test -vet=off -short $(PACKAGE)/ramptest;; \
			*+*) ;; *) go build ./...;; esac; done

# Run every fuzz target of the root module for FUZZTIME each. The tests of a package are linked once.
fuzz:
	set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; cache=$$(go env GOCACHE)/fuzz/$(PACKAGE); \
	all=$$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -r -n1 dirname | sort -u); test -n "$$all"; \
	for p in $$all; do \
		go test -c -fuzz=. -o "$$dir/tests" ./$$p; \
		found=$$("$$dir/tests" -test.list '^Fuzz'); test -n "$$found"; \
		for f in $$found; do echo "$$f:"; \
			(cd $$p && "$$dir/tests" -test.run '^$$' -test.fuzz "^$$f\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 100x -test.fuzzcachedir "$$cache/$$p"); done; done

# Run what takes too long for .ci/run, and write into CONTRIBUTING.md when, and the result.
long:
	$(SUITES)/dbtest/tidb
	$(SUITES)/hosttest/hosts
	go test -timeout 1h -run VerdictsAgree ./ramptest -games 20000
	JUDGE_ALL=1 go -C $(SUITES)/judgetest test -count 1 -timeout 2h .
	internal/test/elsewhere
	PAIRS_ALL=1 internal/test/databases go -C $(SUITES)/pairs test -count 1 -timeout 8h -v .
	INTERLEAVINGS_ALL=1 internal/test/databases go -C $(SUITES)/dbtest test -count 1 -timeout 1h -run Interleaving .
	RAMP_TEST_NIGHT=1 internal/test/databases go -C examples/gameserver test -count 1 -timeout 30m -v -run UnderLoad .
	go -C $(SUITES)/dbtest test -count 1 -timeout 1h -v -run 'BooksNeed|NothingGrows' . -book-orders 1000000 -soak 10m
	$(MAKE) fuzz FUZZTIME=80s
	$(MAKE) releases RELEASES="$(OTHER_JSON)"

# Compare the costs of the package with those of alternatives.
bench:
	go -C $(NEWEST)/bench test -run '^$$' -bench . -benchtime 41x .

# Print the coverage of the package by its own tests.
cover:
	go test -coverprofile cover.out . && go tool cover -func cover.out | tail -n 1
