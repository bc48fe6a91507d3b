#!/bin/sh
# Before the package is removed; an upgrade leaves the service running.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now sous || true
fi
