#!/bin/sh
# Installs Java and the modules of the Python client on a Debian machine, for the tests of the
# OpenAPI document, unless they are installed already.
set -eu
if command -v java >/dev/null 2>&1 && python3 -c 'import urllib3, dateutil, six' 2>/dev/null; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	echo "java, python3 or one of its modules urllib3, dateutil and six is missing: install them with this system's package manager" >&2
	exit 1
fi
as_root=
if [ "$(id -u)" -ne 0 ]; then
	as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
$as_root apt-get install -y -q --no-install-recommends default-jre-headless python3 python3-urllib3 python3-dateutil python3-six
