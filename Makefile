# gatehouse. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Where things that outlive `cargo clean` and a fresh clone are kept.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gatehouse
# The Kubernetes that tests and `make up` run on: 1.37 or 1.34.
KUBERNETES ?= 1.37
# The name of the local control plane of `make up` or the cluster of `make cluster`; several can be up side by side.
NAME ?= gatehouse

# The cargo profile of the program in the image: where it is not set, `dist`, which ships, and in an image for tests
# `release`, which builds in a third of the time. `dev` is for trials.
IMAGE_PROFILE ?=
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p;T;q' Cargo.toml)
IMAGE := gatehouse.dev/gatehouse:$(VERSION)

CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(CACHE)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: up
up: ## A local control plane with gatehouse at its gate, all examples applied, and a tour
	@tools/doctor.sh up
	@tools/build.sh $(KUBERNETES)
	@echo "building gatehouse (a first build takes two to three minutes)"
	@cargo build --quiet --package gatehouse --package testbed --bins
	@tools/up.sh $(NAME) $(KUBERNETES)

.PHONY: down
down: ## End what `make up` started
	@cargo run --quiet -p testbed -- down --name $(NAME)

.PHONY: cluster
cluster: ## A whole local cluster with a node that runs pods, from the same parts; root on Linux
	@tools/doctor.sh up e2e
	@tools/node-packages.sh
	@tools/build.sh node images
	@cargo build --quiet --package testbed --bins
	@tools/cluster.sh $(NAME)-cluster $(KUBERNETES)

.PHONY: cluster-down
cluster-down: ## End what `make cluster` started
	@cargo run --quiet -p testbed -- down --name $(NAME)-cluster

.PHONY: check
check: ## Format, hygiene, licences and sources, lints
	@tools/doctor.sh check
	@tools/ci.sh hygiene lint

.PHONY: fmt
fmt: ## The code is formatted
	cargo fmt --all --check

.PHONY: deny
deny: cargo-deny ## Licences, sources and duplicates of the dependencies, and advisories where they can be had
	$(CARGO_DENY) --log-level error check bans licenses sources
	@tools/advisories.sh $(CARGO_DENY)

# cargo_tool NAME,VERSION,OPTION: the target NAME builds it once, where-NAME prints where it is.
define cargo_tool
.PHONY: $(1) where-$(1)
$(1): $(CACHE)/$(1)-$(2)/bin/$(1)

where-$(1):
	@echo $(CACHE)/$(1)-$(2)/bin/$(1)

$(CACHE)/$(1)-$(2)/bin/$(1):
	@echo "building $(1) $(2) once (one to three minutes on two cores)"
	CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug $(1)@$(2) $(3) --root $(CACHE)/$(1)-$(2)
endef
$(eval $(call cargo_tool,cargo-deny,$(CARGO_DENY_VERSION)))
$(eval $(call cargo_tool,cargo-auditable,0.7.7))
$(eval $(call cargo_tool,cargo-cyclonedx,0.5.9))
$(eval $(call cargo_tool,cargo-about,0.9.3,--features cli))

.PHONY: generated
generated: ## What is generated under deploy/ is current
	cargo run --quiet -- manifests --check deploy

.PHONY: check-deploy
check-deploy: ## The chart and the kustomizations say the same, and fit their schemas and the binary
	@tools/build.sh deploy
	cargo test --workspace --test deploy

.PHONY: gen
gen: ## Write the generated files under deploy/
	cargo run --quiet -- manifests --write deploy

.PHONY: tools
tools: ## Build etcd, kube-apiserver, kube-controller-manager and kubectl into the cache, once
	@tools/build.sh $(KUBERNETES)

.PHONY: image
image: ## The image, as the OCI archive target/image/gatehouse.tar
	@IMAGE_PROFILE=$(IMAGE_PROFILE) tools/rootfs.sh target/image/rootfs
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)} \
		tools/image.sh Dockerfile target/image/rootfs $(IMAGE) target/image/gatehouse.tar VERSION=$(VERSION) \
		REVISION=$$(git describe --always --abbrev=40 --match= --dirty 2>/dev/null || echo unknown)
	@echo "target/image/gatehouse.tar is $(IMAGE), $$(du -h target/image/gatehouse.tar | cut -f1)"

.PHONY: release
release: ## A release of this commit for REGISTRY, below target/releases: make release VERSION=0.1.0 REGISTRY=registry.example.org/team
	@tools/release.sh make $(VERSION)

.PHONY: publish
publish: ## Push that release to REGISTRY and sign it with KEY
	@tools/release.sh publish $(VERSION)

.PHONY: workflows
workflows: ## The workflows of the forge are sound
	@tools/build.sh actionlint
	@$$(tools/build.sh --print actionlint)/actionlint

.PHONY: image-check
image-check: ## The Dockerfile gives the image that `make image` has made (needs buildah)
	@tools/image-check.sh

.PHONY: test
test: ## Everything that runs without a node: pure tests, real API servers of both versions, real etcd of three
	@tools/doctor.sh test
	@tools/database-packages.sh
	@tools/build.sh all deploy release
	@tools/ci.sh build pure servers

.PHONY: conformance
conformance: ## Many random changes of members on real etcd, held against the model and kept under tests/traces/etcd
	@tools/build.sh all
	NIGHTLY=1 CONFORMANCE_KEEP=tests/traces/etcd cargo test --workspace --test etcd -- --include-ignored --test-threads 1 conformance::

.PHONY: e2e
e2e: ## gatehouse as users deploy it, in a cluster with a node; root on Linux
	@tools/doctor.sh e2e
	@$(MAKE) --no-print-directory image IMAGE_PROFILE=$(or $(IMAGE_PROFILE),release)
	@tools/node-packages.sh
	@tools/build.sh node images deploy
	cargo test --workspace --test e2e -- $(FILTER)

.PHONY: nightly
nightly: ## What takes long, in parts: make nightly PART=release; each leaves a line in tests/ledger.ndjson
	@tools/nightly.sh $(PART)

.PHONY: kill
kill: ## EtcdClusters whose operator dies or is answered otherwise, in the release profile; root on Linux
	@tools/doctor.sh e2e
	@$(MAKE) --no-print-directory image IMAGE_PROFILE=$(or $(IMAGE_PROFILE),release)
	@tools/node-packages.sh
	@tools/build.sh node images deploy
	cargo build --release --features fail-points --target-dir target/fail-points
	GATEHOUSE_MORTAL=$(CURDIR)/target/fail-points/release/gatehouse \
		cargo test --workspace --test e2e -- --include-ignored operator_that

.PHONY: bench
bench: tools ## How fast many TDSets follow a common boundary, as a share of what the API server takes
	cargo bench --bench transitions -- $(or $(COUNT),10000) $(VARIANT)

.PHONY: bench-memory
bench-memory: tools ## The memory of a replica, gate and operator in one process, with many TDSets
	cargo bench --bench memory -- $(or $(COUNT),10000)

.PHONY: model
model: ## The plan of EtcdCluster explored further: five members, at random, some minutes for each
	cargo test --workspace --test model -- --include-ignored --nocapture --test-threads=1

.PHONY: coverage
coverage: ## How much of the plan of EtcdCluster, or of that in FOLDER, its exploration goes through; LEAST=90 fails below 90 % of the branches
	@tools/coverage.sh $(FOLDER)

.PHONY: test-pure
test-pure: ## The pure tests alone
	cargo test --workspace --lib

.PHONY: test-api
test-api: ## The tests on real API servers alone; FILTER=v1.37::verbs runs those whose names have that in them
	@tools/build.sh all
	cargo test --workspace --test api -- $(FILTER)

.PHONY: certs
certs: ## Development certificates for `gatehouse serve --webhook-only`
	@certs/make.sh
