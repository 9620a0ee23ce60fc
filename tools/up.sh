#!/usr/bin/env bash
# The main job in one command: a real control plane, gatehouse at its gate, every example applied, and a tour.
#
#   tools/up.sh [NAME] [KUBERNETES]
#
# Wants gatehouse and testbed as `cargo build` leaves them, and the binaries of tools/build.sh; `make up` makes both.
# Running it again replaces gatehouse and goes on with what is stored. `make down` ends it.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")/.."

readonly NAME=${1:-gatehouse} KUBERNETES=${2:-1.37}
target=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")
readonly TESTBED=$target/debug/testbed GATEHOUSE=$target/debug/gatehouse

bold() { if [[ -t 1 ]]; then printf '\n\e[1m%s\e[0m\n' "$*"; else printf '\n%s\n' "$*"; fi; }
# Shows a command as a user would type it, and runs it.
tell() {
    printf '$ %s\n' "$*"
    "$@"
}
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

bold "A control plane"
"$TESTBED" up --name "$NAME" --kubernetes "$KUBERNETES" >/dev/null
KUBECONFIG=$("$TESTBED" kubeconfig --name "$NAME")
export KUBECONFIG
folder=$(dirname -- "$KUBECONFIG")
bin=$(tools/build.sh --print kubernetes "$KUBERNETES")
PATH=$bin:$PATH
kubectl version 2>/dev/null | tail -n 1

bold "gatehouse at its gate, as its ServiceAccount, with no more than the shipped rights"
kubectl apply -f deploy/base/namespace.yaml -f deploy/base/rbac.yaml >/dev/null
token=$(kubectl create token gatehouse --namespace gatehouse-system --duration 720h)
readonly OWN=$folder/gatehouse.kubeconfig LOG=$folder/gatehouse.log
(umask 077 && cp -- "$KUBECONFIG" "$OWN")
kubectl --kubeconfig "$OWN" config set-credentials gatehouse --token "$token" >/dev/null
kubectl --kubeconfig "$OWN" config set-context --current --user gatehouse >/dev/null
: >"$LOG"
"$TESTBED" exec --name "$NAME" --label gatehouse --replace --log "$LOG" -- \
    env KUBECONFIG="$OWN" "$GATEHOUSE" serve --log-format json --listen 127.0.0.1:0 --health-listen 127.0.0.1:0 \
    --webhook-url https://127.0.0.1:0 --drain-delay 0s --drain-deadline 1s >/dev/null
# Follows the log until the cluster points at the gate.
timeout 60 grep -q -m 1 '"message":"installed"' <(tail -n +1 -F --pid=$$ "$LOG" 2>/dev/null) \
    || { tail -n 20 "$LOG" >&2; fail "gatehouse did not install itself, see $LOG"; }
mapfile -t kinds < <(kubectl api-resources --api-group=gatehouse.dev --no-headers | awk '{print tolower($NF)}' | sort -u)
kubectl get crd "${kinds[@]/%/s.gatehouse.dev}" --no-headers -o custom-columns=:metadata.name

bold "Every example"
kubectl apply -R "${kinds[@]/#/--filename=examples/}" 2>&1
kubectl create namespace temp --dry-run=client -o yaml | kubectl apply -f - >/dev/null
"$GATEHOUSE" convert --explicit -f examples/ancestors 2>/dev/null | kubectl apply -f - 2>&1

bold "One object, two versions"
tell kubectl get etcdclusters.v1alpha1.gatehouse.dev classic -o jsonpath='{.apiVersion}{" "}{.spec}{"\n"}' 2>/dev/null
tell kubectl get etcdclusters.v1.gatehouse.dev classic -o jsonpath='{.apiVersion}{" "}{.spec}{"\n"}'

bold "A bad object, all of its errors at once"
printf '$ kubectl create -f examples/rejected/etcdcluster-five-faults.yaml\n'
if kubectl create -f - <examples/rejected/etcdcluster-five-faults.yaml; then
    fail "it should have been refused"
fi

bold "A TDSet's Deployment, at the scheduled count"
kubectl wait --for=create deployment/shop --timeout=30s >/dev/null
tell kubectl get tdset shop
tell kubectl get deployment shop -o jsonpath='{.metadata.name} has {.spec.replicas} replicas{"\n"}'
scheduled=$(kubectl get tdset shop -o jsonpath='{.status.scheduledReplicas}')
replicas=$(kubectl get deployment shop -o jsonpath='{.spec.replicas}')
[[ $scheduled == "$replicas" ]] || fail "the schedule asks for $scheduled replicas and the Deployment has $replicas"

bold "Go on with"
printf '  export KUBECONFIG=%q PATH=%q:$PATH\n' "$KUBECONFIG" "$bin"
printf '  tail -f %q\n' "$LOG"
named=
[[ $NAME == gatehouse ]] || printf -v named ' NAME=%q' "$NAME"
printf '  make down%s\n' "$named"
