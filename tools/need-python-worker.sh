#!/bin/sh
# Installs mypy and the modules of the worker in Python on a Debian machine, for its tests, unless
# they are installed already.
set -eu
if /usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null && command -v mypy >/dev/null 2>&1; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "python3, mypy or one of the modules grpc and protobuf is missing: install them with this system's package manager" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
$as_root apt-get install -y -q --no-install-recommends python3 python3-grpcio python3-protobuf mypy
