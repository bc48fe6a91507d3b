package layers

import (
	"strings"
	"testing"
)

func TestMendNamesTheCommandForThisHost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		layer  Layer
		files  map[string]string
		begins string
	}{
		{"active", Layer{Name: layerUserNamespace, Active: true}, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, ""},
		{"debian", Layer{Name: layerUserNamespace}, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		{"ubuntu", Layer{Name: layerNetworkNamespace}, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"none left", Layer{Name: layerUserNamespace}, map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "sudo sysctl -w user.max_user_namespaces="},
		{"container", Layer{Name: layerUserNamespace}, nil, "in a container: docker run"},
		{"landlock off", Layer{Name: layerFiles}, map[string]string{"/sys/kernel/security/lsm": "capability,yama"}, "add lsm=landlock,capability,yama to"},
		{"old kernel", Layer{Name: layerFiles}, nil, "use Linux 5.13"},
		{"another", Layer{Name: "memory limit"}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := mend(test.layer, func(path string) string { return test.files[path] })
			if !strings.HasPrefix(got, test.begins) || (got == "") != (test.begins == "") {
				t.Errorf("got %q, want a text that begins with %q", got, test.begins)
			}
		})
	}
}
