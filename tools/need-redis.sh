#!/bin/sh
# Installs redis-server on a Debian machine, for the tests, unless it is installed already.
set -eu
if command -v redis-server >/dev/null 2>&1; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "redis-server is missing: install it with this system's package manager" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
# The package also installs a service, which is not used: tests start servers of their own.
$as_root apt-get install -y -q --no-install-recommends redis-server
