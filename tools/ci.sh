#!/usr/bin/env bash
# What has to hold before a change is taken: each stage timed, ended at a limit, and held against its budget.
#
#   tools/ci.sh                  all stages
#   tools/ci.sh STAGE...         some of them: tools hygiene lint build pure servers cluster
#
# Budgets are in tests/budget.toml. The log of each stage is below target/ci; the slowest tests and what became of each
# stage are printed at the end, also where a stage fails. With CI set, what the dependencies compile to is kept between
# runs in ${XDG_CACHE_HOME:-~/.cache}/gatehouse/ci-target; what this repository compiles to never is.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/tests.sh
source "$tools/lib/tests.sh"
cd -- "$tools/.."

readonly STAGES=(tools hygiene lint build pure servers cluster)
# A kept target folder that is larger than this is made from nothing again.
readonly MOST_KIB=$((15 << 20))
# Seconds for another run to end that has the kept target folder.
readonly LONGEST_WAIT=600
run=$PWD/target/ci
readonly run
export TEST_TIMES=$run/tests.tsv TESTS_RUN=$run/programs

# ---- the stages ----

stage_tools() {
    tools/doctor.sh check test e2e
    tools/node-packages.sh
    tools/database-packages.sh
    tools/build.sh all node images deploy release
    make --no-print-directory cargo-deny
}

stage_hygiene() {
    tools/hygiene.sh
    cargo metadata --locked --format-version 1 >/dev/null # Cargo.lock fits Cargo.toml
    cargo fmt --all --check
    make --no-print-directory deny
}

stage_lint() {
    # The tests of the cluster tier are not among all targets: `cargo test` passes them by.
    cargo clippy --workspace --all-targets --quiet -- --deny warnings
    cargo clippy --workspace --test e2e --test node --quiet -- --deny warnings
}

# One call, so that each dependency is compiled with one set of features.
stage_build() { build_tests; }

# What computes: two programs side by side, since none of them keeps both cores busy to its end.
stage_pure() {
    local beside result=0
    one_after_the_other gate migrations deploy golden preview chains replay &
    beside=$!
    one_after_the_other architecture gatehouse kit testbed generated cli tools schedules model fuzz random_objects || result=1
    wait "$beside" || result=1
    return "$result"
}

one_after_the_other() {
    local name
    for name; do run_tests "$name" || return 1; done
}

# What mostly waits for servers: two programs side by side.
stage_servers() {
    local api
    WITH_SLICE=$(slice) run_tests api &
    api=$!
    WITH_SLICE=$(slice) one_after_the_other migrate etcd guard certificates control_plane release ||
        { kill "$api" 2>/dev/null; wait "$api" || true; return 1; }
    wait "$api"
}

stage_cluster() {
    say "with the slice of what takes long: SLICE=$(slice)"
    SLICE='' WITH_SLICE=$(slice) run_tests e2e
    if node_is_due; then run_tests node; else pass_by node; fi
}

# Which slice of what takes long this run takes beside the rest.
slice() { echo "${SLICE:-$(git rev-list --count HEAD 2>/dev/null || echo 0)}"; }

# The local cluster's own tests run where what they are about has changed since the ledger had them green.
node_is_due() {
    local commit
    commit=$(sed -n '/"part":"node"/{/"result":"ok"/s/.*"commit":"\([0-9a-f]*\)".*/\1/p}' tests/ledger.ndjson | tail -n 1)
    [[ -n $commit ]] || return 0
    # What runs checks is not what they are about.
    ! git diff --quiet "$commit" -- tests/testbed Cargo.lock tools \
        ':!tools/ci.sh' ':!tools/nightly.sh' ':!tools/coverage.sh' ':!tools/ledger.sh' 2>/dev/null
}

# ---- around them ----

# seconds_of TABLE STAGE: what tests/budget.toml has for it.
seconds_of() {
    awk -v table="[$1]" -v stage="$2" '/^\[/ { here = $1 } here == table && $1 == stage { print $3 }' tests/budget.toml
}

# limit_of STAGE: after how many seconds it is ended.
limit_of() {
    local limit
    limit=$(seconds_of limit "$1")
    echo "${limit:-$(($(seconds_of budget "$1") * 3))}"
}

# Runs a stage in a process of its own, so that all of it ends at its limit.
run_stage() {
    local stage=$1 begun=$SECONDS budget result=ok
    budget=$(seconds_of budget "$stage")
    [[ -n $budget ]] || fail "tests/budget.toml has no budget for the stage $stage"
    printf '\n==== %s (budget %s s)\n' "$stage" "$budget"
    timeout --kill-after=30 "$(limit_of "$stage")" "$0" --stage "$stage" 2>&1 | tee "$run/$stage.log" || result=FAILED
    printf '%s\t%s\t%s\t%s\n' "$stage" "$((SECONDS - begun))" "$budget" "$result" >>"$run/stages.tsv"
    [[ $result == ok ]]
}

# A machine that takes longer to build than it may is slow, or new, and on one with other work the tests wait for a core:
# what they wait for may take twice as long. A loop on each core shows whether there is other work, by the clock and by
# what it computes. The load and the pressure would count the image as well, which gives way.
be_patient() {
    local seconds times TIMEFORMAT='%R %U'
    seconds=$(awk '$1 == "build" { print $2 }' "$run/stages.tsv")
    times=$({ time {
        for _ in $(seq "$(nproc)"); do (for ((step = 0; step < 300000; step++)); do :; done) & done
        wait
    }; } 2>&1)
    if ((seconds > $(seconds_of budget build))) ||
        awk -v cores="$(nproc)" '{ exit !($1 * cores > $2 * 1.5) }' <<<"$times"; then
        export TEST_PATIENCE=${TEST_PATIENCE:-2}
        say "what tests wait for may take $TEST_PATIENCE times as long"
    fi
}

image=
# The image, while other stages wait: it takes what the cores have left. The linter leaves it half of them. In a session of
# its own, so that all of it can be told from the rest. The profile is the one that builds quickly; the nightly runs the one
# that ships. Where the kernel schedules by session, the session has to be the one that gives way.
start_image() {
    local idle=()
    ! command -v chrt >/dev/null || idle=(chrt --idle 0)
    setsid "${idle[@]}" "$0" --image >"$run/image.log" 2>&1 9>&- &
    image=$!
}
build_image() {
    (echo 19 >/proc/self/autogroup) 2>/dev/null || true
    make --no-print-directory image IMAGE_PROFILE=quick
    printf 'image\t%s\t%s\tok\n' "$SECONDS" "$(seconds_of budget image)" >>"$run/stages.tsv"
}
await_image() {
    local begun=$SECONDS id limit built=0
    [[ -n $image ]] || return 0
    limit=$(limit_of image)
    # Nothing is to go before it any longer.
    (echo 0 >"/proc/$image/autogroup") 2>/dev/null || true
    for id in $(pgrep --session "$image"); do chrt --other --all-tasks --pid 0 "$id" 2>/dev/null || true; done
    while kill -0 "$image" 2>/dev/null && ((SECONDS - begun < limit)); do sleep 1; done
    if kill -0 "$image" 2>/dev/null; then end_image; fi
    wait "$image" || built=$?
    image=
    ((built == 0)) || { cat "$run/image.log"; fail "the image was not built, after another $((SECONDS - begun)) of $limit s"; }
    say "waited $((SECONDS - begun)) s more for the image"
}

# Ends all of its session, also what make and cargo have started.
end_image() {
    local id
    for id in $(pgrep --session "$image"); do kill "$id" 2>/dev/null || true; done
}

# rustup may know the compiler that is pinned by another name.
find_compiler() {
    local pinned
    pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    rustc -V >/dev/null 2>&1 || [[ $(RUSTUP_TOOLCHAIN=stable rustc -V 2>/dev/null) != "rustc $pinned "* ]] ||
        export RUSTUP_TOOLCHAIN=stable
}

# Dependencies alone are kept between runs.
keep_dependencies() {
    local kept=${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse/ci-target size compiler
    mkdir -p -- "$kept"
    exec 9>"$kept.lock"
    if ! flock --nonblock 9; then
        say "another run has the kept dependencies: waiting for it"
        flock --wait "$LONGEST_WAIT" 9 || fail "another run has kept $kept.lock for $LONGEST_WAIT s"
    fi
    compiler=$(rustc -vV)
    size=$(du -sk -- "$kept" | cut -f1)
    if ((size > MOST_KIB)) || [[ ! -f $kept/.compiler || $(<"$kept/.compiler") != "$compiler" ]]; then
        rm -rf -- "${kept:?}"
        mkdir -p -- "$kept"
        printf '%s\n' "$compiler" >"$kept/.compiler"
    fi
    export CARGO_TARGET_DIR=$kept CARGO_INCREMENTAL=0
    local profile own
    # What the packages of this repository compile to goes.
    mapfile -t own < <(awk -F'"' '/^\[/ { here = $0 } here == "[package]" && /^name = / { print "--package=" $2 }' \
        Cargo.toml tests/*/Cargo.toml)
    for profile in dev quick; do
        cargo clean --quiet "${own[@]}" --profile "$profile"
        cargo clean --quiet "${own[@]}" --profile "$profile" \
            --target "$(rustc -vV | sed -n 's/^host: \([^-]*\)-.*/\1/p')-unknown-linux-gnu"
    done
}

report() {
    local stage seconds budget result
    printf '\n==== the slowest tests\n'
    [[ ! -s $TEST_TIMES ]] || sort -rn -- "$TEST_TIMES" | head -n 20 | awk -F'\t' '{ printf "%8.1f s  %-6s %s\n", $1, $2, $3 }'
    printf '\n==== figures\n'
    grep -ahoE '^ *figure: .*' "$run"/*.log | sort -u || true
    printf '\n==== stages\n'
    while IFS=$'\t' read -r stage seconds budget result; do
        printf '%-10s %6s s of %6s  %s%s\n' "$stage" "$seconds" "$budget" "$result" \
            "$( ((seconds * 2 <= budget * 3)) || printf '  OVER its budget by half')"
    done <"$run/stages.tsv"
    printf '%-10s %6s s\n' all "$SECONDS"
    printf '\n==== the long checks, by their last line in tests/ledger.ndjson\n'
    tools/ledger.sh ages
}

cleanup() {
    local status=$?
    if [[ -n $image ]]; then end_image; fi
    report || true
    if ((status != 0)); then printf '\nFAILED: %s\n' "$failed"; fi
    return "$status"
}

failed='before any stage'
main() {
    local stage stages=("$@")
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    --stage)
        "stage_$2"
        return
        ;;
    --image)
        build_image
        return
        ;;
    '') stages=("${STAGES[@]}") ;;
    esac
    rm -rf -- "$run"
    mkdir -p -- "$run"
    : >"$run/stages.tsv"
    find_compiler
    [[ -z ${CI:-} ]] || keep_dependencies
    trap cleanup EXIT
    for stage in "${stages[@]}"; do
        failed=$stage
        if [[ -z $image && $stage =~ ^(lint|build)$ && " ${stages[*]} " == *' cluster '* ]]; then start_image; fi
        [[ $stage != cluster ]] || await_image
        if [[ $stage =~ ^(pure|servers|cluster)$ ]]; then be_patient; fi
        run_stage "$stage"
    done
    if [[ ${stages[*]} == "${STAGES[*]}" ]]; then
        failed='the list of test programs'
        none_is_left_out
    fi
    failed=
}

main "$@"
