# Plain targets; each prints what it runs. A nested module is one that no
# importer of the package pays for.
MODULES := $(patsubst %/,%,$(sort $(dir $(wildcard go.mod */go.mod */*/go.mod */*/*/go.mod))))
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.1
FUZZTIME ?= 10s

.PHONY: test check fuzz bench cover

# Every test of every module. Those that want a database server say so at the
# end, because go test is silent about what a test skipped.
test:
	s=0; for m in $(MODULES); do go -C $$m test ./... || s=1; done; exit $$s
	@for e in RAMP_TEST_POSTGRESQL RAMP_TEST_MYSQL RAMP_TEST_REDIS; do \
		printenv $$e >/dev/null || echo "*** NOT TESTED, because $$e is not set: run internal/dbtest/databases make test ***"; done

# Form: gofmt, go vet and staticcheck on every module.
check:
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	set -e; for m in $(MODULES); do go -C $$m vet ./...; (cd $$m && go run $(STATICCHECK) ./...); done

# Every fuzz target of the package and of ramptest for FUZZTIME each.
fuzz:
	set -e; for p in . ./ramptest; do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$p; done; done

# Costs, beside what one would otherwise use.
bench:
	go test -run '^$$' -bench . -benchmem .

# Coverage of the package by its own tests.
cover:
	go test -coverprofile cover.out . && go tool cover -func cover.out | tail -n 1
