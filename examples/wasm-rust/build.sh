#!/bin/sh
# Builds sha256.wasm. On Debian: apt-get install rustc libstd-rust-dev-wasm32
set -eu
cd "$(dirname "$0")"
"${RUSTC:-rustc}" --target wasm32-unknown-unknown --crate-type cdylib --crate-name sha256 --edition 2021 \
	-C opt-level=3 -C panic=abort -C strip=symbols -C link-arg=-zstack-size=65536 -C linker="${LINKER:-rust-lld}" -o sha256.wasm src/lib.rs
