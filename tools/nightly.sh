#!/usr/bin/env bash
# The checks that take long, in parts of less than 80 minutes. Each run leaves a line in tests/ledger.ndjson.
#
#   tools/nightly.sh PART      runs a part; its log is target/nightly/PART.log
#   tools/nightly.sh --list    names the parts
#
# Seeds are random, printed and written down; SEED=n repeats one.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/tests.sh
source "$tools/lib/tests.sh"
cd -- "$tools/.."

readonly LIMIT=4800 # seconds
SEED=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
export NIGHTLY=1 TEST_PATIENCE=${TEST_PATIENCE:-2} SEED
export PROPTEST_RNG_SEED=$SEED E2E_SEED=$SEED MODEL_SEED=$SEED CONFORMANCE_SEED=$SEED FUZZ_SEED=$SEED

# What tests on a node need. $1 is the profile of the image, if it is to be another than the one that builds quickly.
on_a_node() {
    make --no-print-directory image IMAGE_PROFILE="${1:-release}"
    tools/node-packages.sh
    tools/build.sh node images deploy
    build_tests
}

# The image and the way of deploying as they ship: the full drain, both ways, what `.ci/run` leaves out, and the image
# of the Dockerfile.
part_release() {
    command -v buildah >/dev/null ||
        fail "buildah is missing, with which the Dockerfile is compared with the image: apt-get install buildah"
    on_a_node dist
    tools/image-check.sh
    NIGHTLY_PART=release run_tests e2e
}

# The local cluster's own tests.
part_node() {
    on_a_node
    run_tests node
}

# Operators that die or are answered otherwise, at every point of a larger life.
part_long-1() {
    on_a_node
    NIGHTLY_PART=long-1 run_tests e2e
}

# Those at what clusters seldom have, chains of edits, a hundred clusters.
part_long-2() {
    on_a_node
    NIGHTLY_PART=long-2 run_tests e2e
}

# The same deaths with the release profile.
part_kill() { make --no-print-directory kill; }

# As many TDSets as `.ci/run` cannot wait for, beside all else of the API tier.
part_api() {
    tools/build.sh all
    build_tests
    run_tests api
}

# Migrations on all engines, with MySQL as Debian unstable has it today.
part_migrate() {
    tools/build.sh all
    tools/database-packages.sh
    tools/mysql.sh --again
    build_tests
    run_tests migrate --include-ignored
}

# The whole table of what a review may cost, and the other figures, of the program as it ships, or of GATEHOUSE_PROGRAM;
# they are measured one by one. All else that the gate is asked, with the program of the tests.
part_gate() {
    local program=${GATEHOUSE_PROGRAM:-}
    local -r measured=(hostile::amplification:: process::how_long_ hostile::size::a_burst_ hostile::ports::good_reviews_)
    if [[ -z $program ]]; then
        cargo build --locked --package gatehouse --bin gatehouse --profile dist
        program=$(realpath -- "${CARGO_TARGET_DIR:-target}/dist/gatehouse")
    fi
    unset GATEHOUSE_PROGRAM
    build_tests
    # shellcheck disable=SC2046 # two words each
    run_tests gate --show-output $(printf -- '--skip %s ' "${measured[@]}")
    say "figure: of the program $(sha256sum -- "$program" | cut -c 1-12)"
    GATEHOUSE_PROGRAM=$program run_tests gate --show-output --test-threads 1 "${measured[@]}"
}

# The API tier on a cluster that is there before it, and that `KUBECONFIG` names.
part_existing() {
    local testbed=${CARGO_TARGET_DIR:-target}/debug/testbed kubeconfig
    tools/build.sh all
    build_tests
    # shellcheck disable=SC2064 # as it is now
    trap "$(printf '%q ' "$testbed" down --name existing)" EXIT
    kubeconfig=$("$testbed" up --name existing)
    KUBECONFIG=$kubeconfig run_tests api v1.37::
}

# Pods that the release before made, or where there is none the commit of a day before, outlive the operator of this commit.
# BEFORE names another commit.
part_takeover() {
    local before=${BEFORE:-} tree=target/nightly/before built=${CARGO_TARGET_DIR:-$PWD/target}
    [[ -n $before ]] || before=$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || git rev-list -1 --before='1 day ago' HEAD)
    say "BEFORE=$before"
    tools/build.sh all
    mkdir -p -- "$tree"
    git archive "$before" | tar -x -C "$tree"
    # For a test, and into the same folder: what both builds have in common is compiled once.
    (cd -- "$tree" && CARGO_TARGET_DIR=$built cargo test --workspace --test generated --no-run)
    cp -- "$built/debug/gatehouse" target/nightly/gatehouse-before
    rm -rf -- "$tree"
    build_tests
    GATEHOUSE_BEFORE=$PWD/target/nightly/gatehouse-before run_tests api --ignored takeover
}

# Explorations and members at random, each property many times, and how much of the plans the slices go through.
part_model() {
    tools/build.sh all
    build_tests
    run_tests model --include-ignored --show-output --test-threads 1
    run_tests migrations --ignored --show-output
    run_tests etcd --include-ignored --test-threads 1 conformance::
    PROPTEST_CASES=${PROPTEST_CASES:-10000} run_tests gatehouse
    local plan
    for plan in etcdcluster tdset; do LEAST=90 tools/coverage.sh "src/kinds/$plan/plan"; done
}

# A million cases of each target, as many targets at once as there are cores. Optimized, that is four times as many a
# second; the profile is that of all tests, in which a number that overflows panics.
part_fuzz() {
    CARGO_PROFILE_DEV_OPT_LEVEL=2 cargo test --workspace --test fuzz -- --nocapture
}

# TDSets that make their Deployments, alone; and all kinds of targets, beside the controllers of Kubernetes. Members of
# etcd that start with much data, one version after the other.
part_bench() {
    make --no-print-directory bench
    make --no-print-directory bench VARIANT=mixed CONTROLLERS=1
    make --no-print-directory bench-memory
    tools/build.sh all
    build_tests
    run_tests etcd --ignored --test-threads 1 initial_check::
}

parts() { declare -F | sed -n 's/^declare -f part_//p'; }

main() {
    local part=${1:-} begun=$SECONDS result=ok log figures
    case $part in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    --list)
        parts
        return
        ;;
    --part)
        "part_$2"
        return
        ;;
    esac
    declare -F "part_$part" >/dev/null || fail "PART=$part: there is $(parts | paste -sd' ')"
    log=target/nightly/$part.log
    mkdir -p -- "${log%/*}"
    say "SEED=$SEED"
    timeout --kill-after=60 "$LIMIT" "$0" --part "$part" 2>&1 | tee "$log" || result=FAILED
    mapfile -t figures < <(grep -ahoE '^ *figure: .*' "$log" | sed 's/^ *figure: //' | sort -u || true)
    tools/ledger.sh add "$part" "$SEED" "$((SECONDS - begun))" "$result" "${figures[@]}"
    [[ $result == ok ]]
}

main "$@"
