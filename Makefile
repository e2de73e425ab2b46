# Everything that people and machines do with this repository. Longer recipes are scripts in .ci/.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
SAMPLE ?= 0
SEED ?= 1
BASE ?= HEAD
BENCH ?=
RELEASE ?= $(shell awk '/^\#\# [0-9]/ { print $$2; exit }' CHANGELOG.md)
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

.PHONY: demo cluster test check build image release bench bench-check faults fuzz docs site

# As the tests: what one target has compiled, the others do not compile again.
demo cluster bench bench-check faults docs: export GOFLAGS += -trimpath
demo cluster bench bench-check faults docs: export CGO_ENABLED = 0

demo: # everything from nothing: the first results come before the cluster is compiled; on an existing cluster if you want it
	VERSION='$(VERSION)' .ci/demo

cluster: # a Kubernetes cluster to try things on, until Ctrl-C
	.ci/setup runc nft ip
	cd deployer/e2e && go run ./cmd/cluster

test: # set up what is missing and run the tests, but for the long ones, which 'make check' runs
	.ci/test -short

check: # what a change has to pass
	.ci/check

build: # the program, as it is released
	VERSION='$(VERSION)' .ci/build bin/solutionctl

image: # dist/solutionctl-VERSION.iso: the program as a Solution, for what runs in a cluster
	VERSION='$(VERSION)' .ci/image dist

release: # dist/release: everything that users download, reproducible; KEY=FILE signs it (docs/releases.md)
	VERSION='$(RELEASE)' .ci/release dist/release

bench: # the tables of docs/performance, in at most about 15 minutes: the program beside what its users would use instead
	cd deployer/e2e && go run ./cmd/benchmark $(BENCH)

bench-check: # the program of the working tree beside the one of commit BASE; fails if it takes more than 1.1 times, beyond noise
	cd deployer/e2e && go run ./cmd/benchmark -base '$(BASE)' $(BENCH)

faults: # docs/reliability.md: the program killed at every step of every verb, and run again (hours; goes on where it was stopped; SAMPLE=30 SEED=1: 30 steps of each, half an hour)
	cd deployer/e2e && go run ./cmd/faults -sample '$(SAMPLE)' -seed '$(SEED)'
	[ '$(SAMPLE)' != 0 ] || (cd deployer/e2e && go test -count=1 -timeout 6h ./deployer -run TestDefinitionMatrix -objects 10000)

fuzz: # every fuzz target for FUZZTIME (30s)
	.ci/fuzz

site: # dist/site: the documentation as HTML, which needs no network
	.ci/site dist/site

docs: # the reference of the command line, and the JSON Schemas of what the program writes
	go test ./schema -run TestGeneratedSchemas -update
	rm -rf docs/reference && mkdir docs/reference
	go run ./cmd/solutionctl docs docs/reference
	go test ./lint -run TestCorpus -update
