# Plain targets; each prints what it runs. A nested module is one that no
# importer of the package pays for.
MODULES := $(patsubst %/,%,$(sort $(dir $(wildcard go.mod */go.mod */*/go.mod */*/*/go.mod))))
PACKAGE := github.com/token-ramp/ramp-go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 10s

# Where the package is tested beside the Go at hand: the other releases, and
# the other version of encoding/json on each that has both.
RELEASES := go1.25.14 go1.26.8+jsonv2 go1.27.4 go1.27.4+nojsonv2

.PHONY: test check releases newest fuzz bench cover

# Every test of every module. Those that want a database server say so at the
# end, because go test is silent about what a test skipped.
test:
	s=0; for m in $(MODULES); do go -C $$m test ./... || s=1; done; exit $$s
	@PATH=$$PATH:/usr/sbin; for p in nginx haproxy; do \
		command -v $$p >/dev/null || echo "*** NOT TESTED: the settings for $$p, because it is not installed ***"; done
	@for e in RAMP_TEST_POSTGRESQL RAMP_TEST_MYSQL RAMP_TEST_REDIS; do \
		printenv $$e >/dev/null || echo "*** NOT TESTED, because $$e is not set: run internal/dbtest/databases make test ***"; done

# Form: gofmt on every file; go mod tidy, go vet and staticcheck on every module.
check:
	files=$$(gofmt -l .); test -z "$$files" || { echo "*** run gofmt on: $$files ***" >&2; exit 1; }
	set -e; for m in $(MODULES); do \
		go -C $$m mod tidy -diff || { echo "*** $$m/go.mod or go.sum is not tidy: run go -C $$m mod tidy ***" >&2; exit 1; }; \
		go -C $$m vet ./...; (cd $$m && go run $(STATICCHECK) ./...); done

# The package on every release of Go, which must read and write the same. The Go
# command fetches a release that is missing through the module proxy.
releases:
	set -e; for r in $(RELEASES); do \
		export GOTOOLCHAIN=$${r%%+*}; \
		case $$r in *+*) export GOEXPERIMENT=$${r#*+};; *) unset GOEXPERIMENT;; esac; \
		echo "$$r:"; go version || { echo "*** NOT TESTED on $$r, because the release could not be fetched ***" >&2; exit 1; }; \
		go test . ./ramptest; done

# The package with the newest go-ethereum, which internal/nodetest requires. The
# other targets test it with the oldest, which go.mod requires.
newest:
	go -C internal/nodetest list -m -f '{{.Path}} {{.Version}}' github.com/ethereum/go-ethereum
	go -C internal/nodetest test $(PACKAGE) $(PACKAGE)/ramptest

# Every fuzz target of the package, ramptest and internal/redact for FUZZTIME each.
fuzz:
	set -e; for p in . ./ramptest ./internal/redact; do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$p; done; done

# Costs, beside what one would otherwise use.
bench:
	go test -run '^$$' -bench . -benchmem .

# Coverage of the package by its own tests.
cover:
	go test -coverprofile cover.out . && go tool cover -func cover.out | tail -n 1
