#!/usr/bin/env bash
# Holds the dependencies against the RustSec database of advisories, where that can be had.
#
#   tools/advisories.sh CARGO_DENY
#
# The database is fetched by git into $CARGO_HOME/advisory-dbs. Where it cannot be fetched, the one of an earlier time is
# taken; where there is none, one line says so, and that is no failure: work without a network is not held up.
# With ADVISORIES=required it is one, for a CI that has a network. A mirror is given by git:
#
#   git config --global url.https://git.example.org/advisory-db.insteadOf https://github.com/RustSec/advisory-db
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

# Seconds that the fetch may take: some networks answer nothing at all.
readonly PATIENCE=120

# There is a database of an earlier time.
is_kept() { compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-dbs/*/crates" >/dev/null; }

main() {
    local deny=${1:-} said why
    case $deny in
    '' | -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    cd -- "$tools/.."
    if ! said=$(GIT_TERMINAL_PROMPT=0 timeout "$PATIENCE" "$deny" --log-level error fetch db 2>&1); then
        why=$(sed -n 's/^fatal: //p;T;q' <<<"$said")
        why=${why:-no answer within $PATIENCE s}
        if ! is_kept; then
            [[ ${ADVISORIES:-} != required ]] || fail "advisories: the database cannot be fetched: $why"
            say "advisories: not checked, the database cannot be fetched: $why"
            return
        fi
        say "advisories: checked against the database of an earlier time: $why"
    fi
    "$deny" --offline --log-level error check advisories
}

main "$@"
