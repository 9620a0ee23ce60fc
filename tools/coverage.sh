#!/usr/bin/env bash
# Tells how much of a plan the exploration of it goes through: regions, functions, lines and branches of each file.
#
#   tools/coverage.sh [FOLDER]
#
# With LEAST=n it fails where fewer of all branches, in percent, are gone through.
# FOLDER is src/kinds/etcdcluster/plan unless it is given. What goes through src/kinds/tdset is the exploration of
# schedules, and through all else that of the model. Builds gatehouse and the exploration again, in
# target/coverage. Wants llvm-profdata and llvm-cov of the compiler's version of LLVM: those of the toolchain
# (`rustup component add llvm-tools`), or in LLVM_TOOLS.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
cd -- "$tools/.."

readonly folder=${1:-src/kinds/etcdcluster/plan} coverage=$PWD/target/coverage
case $folder in
src/kinds/tdset | src/kinds/tdset/*) exploration=schedules ;;
*) exploration=model ;;
esac
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=${LLVM_TOOLS:-$(rustc --print sysroot)/lib/rustlib/$host/bin}
[[ -d $folder ]] || fail "there is no folder $folder"
for tool in llvm-profdata llvm-cov; do
    [[ -x $llvm/$tool ]] || fail "$tool is not in $llvm; \`rustup component add llvm-tools\` puts it there"
done

export CARGO_TARGET_DIR=$coverage RUSTC_WORKSPACE_WRAPPER=$tools/lib/instrumented.sh
# What is built runs while it is built, too.
export LLVM_PROFILE_FILE=$coverage/build-%p.profraw
program=$(cargo test --workspace --test "$exploration" --no-run --message-format json | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
[[ -x $program ]] || fail "the exploration was not built"

rm -f -- "$coverage"/*.profraw
# The slices alone: what finds planted faults and replays traces goes where it was sent.
mapfile -t slices < <("$program" --list --format terse | sed -n 's/^\([a-z_]*\): test$/\1/p' | grep -v '^every_planted_fault')
LLVM_PROFILE_FILE=$coverage/%p.profraw "$program" --exact "${slices[@]}"
"$llvm/llvm-profdata" merge --sparse --output "$coverage/slices.profdata" "$coverage"/*.profraw
# The module of a folder may be a file beside it.
modules=("$folder")
[[ ! -f $folder.rs ]] || modules+=("$folder.rs")
mapfile -t files < <(find "${modules[@]}" -name '*.rs' ! -name tests.rs ! -path '*/tests/*' | sort)
"$llvm/llvm-cov" report "$program" --instr-profile "$coverage/slices.profdata" --show-branch-summary "${files[@]/#/$PWD/}" |
    tee "$coverage/report.txt"
# The last column is that of the branches.
branches=$(awk '/^TOTAL / {print $NF}' "$coverage/report.txt")
echo "figure: branches of $folder: $branches"
awk -v got="${branches%\%}" -v least="${LEAST:-0}" 'BEGIN {exit !(got + 0 >= least + 0)}' ||
    fail "the exploration goes through $branches of the branches of $folder, and has to go through $LEAST %"
