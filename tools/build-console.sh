#!/bin/sh
# Builds the console into the folder $1 (make build), as console.zip. CONSOLE=no leaves it out, and
# so does CONSOLE=auto where npm is missing or cannot install the packages: sous then has no console,
# and everything else. CONSOLE=yes fails instead.
set -eu
bin=${1:?usage: tools/build-console.sh FOLDER}
: "${GO:=go}" "${CONSOLE:=auto}"
rm -f "$bin/console.zip"

without() {
	if [ "$CONSOLE" = yes ]; then
		echo "build-console: $1" >&2
		exit 1
	fi
	echo "build-console: $1: sous is built without its console" >&2
	exit 0
}

if [ "$CONSOLE" = no ]; then
	exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
	without "npm is not installed (tools/need-npm.sh installs it)"
fi
# The lock file is newer than the packages after it changed.
if [ ! -d console/node_modules ] || [ console/package-lock.json -nt console/node_modules ]; then
	npm ci --prefix console --ignore-scripts --no-audit --no-fund >&2 || without "npm cannot install the packages of the console"
	touch console/node_modules
fi
# GOOS and GOARCH are those of the program, not of its tools.
GOOS= GOARCH= CGO_ENABLED=0 $GO run ./tools/console -from console -out "$bin/console.zip"
