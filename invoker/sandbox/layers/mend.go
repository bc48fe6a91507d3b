package layers

import (
	"os"
	"strings"
)

// The layers that a host can lack, by their names in the answer of Doctor.
const (
	layerUserNamespace    = "user namespace"
	layerNetworkNamespace = "network namespace"
	layerUser             = "user of its own"
	layerFiles            = "no files"
	layerCGroup           = "cgroup for each child"
)

// Mend returns the command that makes an inactive layer active on this host, "" for an active
// layer and for one that no command changes.
func Mend(l Layer) string { return mend(l, systemText) }

// mend is Mend on a host whose system files read returns.
func mend(l Layer, read func(path string) string) string {
	if l.Active {
		return ""
	}
	switch l.Name {
	case layerUserNamespace, layerNetworkNamespace:
		switch {
		case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
			return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
		case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
			return "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
		case read("/proc/sys/user/max_user_namespaces") == "0":
			return "sudo sysctl -w user.max_user_namespaces=15000"
		}
		return "in a container: docker run --security-opt seccomp=FILE, a profile that allows clone and unshare with CLONE_NEWUSER (that of Docker refuses them)"
	case layerUser:
		return "start the server as root in a container with cap_drop ALL and cap_add SETUID, SETGID, KILL, SETPCAP (deploy/docker-compose.yml); elsewhere, with a user namespace, this is one defence less"
	case layerFiles:
		if lsm := read("/sys/kernel/security/lsm"); lsm != "" && !strings.Contains(lsm, "landlock") {
			return "add lsm=landlock," + lsm + " to the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, sudo update-grub, sudo reboot)"
		}
		return "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK (uname -r prints yours), and a container profile that allows landlock_create_ruleset"
	}
	if l.Name == layerCGroup {
		return "run the server as a systemd unit with Delegate=cpu memory pids and DelegateSubgroup=server (deploy/sous.service), on a host with cgroup v2"
	}
	return ""
}

// systemText returns the content of a system file without blanks around it, "" if it cannot
// be read.
func systemText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
