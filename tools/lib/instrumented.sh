#!/usr/bin/env bash
# A compiler for cargo's RUSTC_WORKSPACE_WRAPPER: what it builds of this workspace counts the branches that are taken.
# They are counted on request of a nightly compiler alone, and of one that takes itself for one.
RUSTC_BOOTSTRAP=1 exec "$@" -Cinstrument-coverage -Zcoverage-options=branch
