#!/usr/bin/env bash
# A whole local cluster in one command: a control plane with a node that runs pods, and the images that it can run.
#
#   tools/cluster.sh [NAME] [KUBERNETES]
#
# Needs root on Linux. Wants testbed as `cargo build` leaves it, and what tools/build.sh node images makes; `make
# cluster` makes both. Running it again loads images that are new. `make cluster-down` ends it.
# With KUBECONFIG set nothing is started: that cluster is the one to use, and it gets its images from its registry.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

# shellcheck source=lib/common.sh
source tools/lib/common.sh

readonly NAME=${1:-gatehouse-cluster} KUBERNETES=${2:-1.37}
readonly TESTBED=${CARGO_TARGET_DIR:-target}/debug/testbed GATEHOUSE=target/image/gatehouse.tar

if [[ -n ${KUBECONFIG:-} ]]; then
    say "KUBECONFIG is set: nothing is started, the cluster of $KUBECONFIG is used; its images are its owner's business"
    exit
fi
((EUID == 0)) || fail "a node needs root: run this as root, or \`make up\` for a control plane without a node"

images=$(tools/build.sh --print images)
archives=("$images"/*.tar)
if [[ -f $GATEHOUSE ]]; then archives+=("$GATEHOUSE"); fi

started=$SECONDS
kubeconfig=$("$TESTBED" up --node --name "$NAME" --kubernetes "$KUBERNETES")
"$TESTBED" load --name "$NAME" "${archives[@]}"
say "ready after $((SECONDS - started)) s; go on with"
printf '  export KUBECONFIG=%q PATH=%q:$PATH\n' "$kubeconfig" "$(tools/build.sh --print kubernetes "$KUBERNETES")"
printf '  %s load --name %s FILE...      # an image, as an archive\n' "$TESTBED" "$NAME"
printf '  %s logs --name %s --into DIR   # logs of everything\n' "$TESTBED" "$NAME"
printf '  make cluster-down NAME=%s\n' "${NAME%-cluster}"
