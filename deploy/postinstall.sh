#!/bin/sh
# After the package was installed or upgraded. A service that runs is not restarted: replicas
# are restarted one at a time, by their operator (docs/upgrade.md). dpkg --root sets DPKG_ROOT.
set -e
if [ "$1" = configure ]; then
	if [ ! -e "$DPKG_ROOT/etc/sous/environment" ]; then
		install -m 0600 /dev/null "$DPKG_ROOT/etc/sous/environment"
		cat <<'TEXT'
sous is installed. To start the service:
  echo SOUS_STORE=redis://127.0.0.1:6666 > /etc/sous/environment
  sous keys bootstrap --store redis://127.0.0.1:6666
  systemctl enable --now sous
To try it without a store server: sous dev
TEXT
	fi
	if [ -d "$DPKG_ROOT/run/systemd/system" ]; then
		systemctl daemon-reload
	fi
fi
