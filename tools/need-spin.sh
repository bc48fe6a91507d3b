#!/bin/sh
# Installs spin and a C compiler on a Debian machine, for the tests of models, unless it is installed already.
set -eu
if command -v spin >/dev/null 2>&1 && command -v cc >/dev/null 2>&1; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "spin or cc is missing: install them with this system's package manager" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
$as_root apt-get install -y -q --no-install-recommends spin gcc libc6-dev
