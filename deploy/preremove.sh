#!/bin/sh
# Before the package is removed; an upgrade leaves the service running.
set -e
if [ "$1" = remove ] && [ -d "$DPKG_ROOT/run/systemd/system" ]; then
	systemctl disable --now sous || true
fi
