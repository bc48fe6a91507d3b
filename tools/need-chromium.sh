#!/bin/sh
# Installs Chromium on a Debian machine, for the tests of the documentation's site, unless
# it is installed already.
set -eu
if command -v chromium >/dev/null 2>&1; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "chromium is missing: install it with this system's package manager" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
$as_root apt-get install -y -q --no-install-recommends chromium
