#!/bin/sh
# After the package was removed or purged. The environment file may hold the password of the
# store: a purge deletes it, a removal keeps it for the next installation.
set -e
if [ "$1" = purge ]; then
	rm -f "$DPKG_ROOT/etc/sous/environment"
	rmdir --ignore-fail-on-non-empty "$DPKG_ROOT/etc/sous" 2>/dev/null || true
fi
if [ "$1" != upgrade ] && [ -d "$DPKG_ROOT/run/systemd/system" ]; then
	systemctl daemon-reload
fi
