package command

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTargetOfFlagsEnvironmentAndProfile(t *testing.T) {
	t.Parallel()
	saved := Profile{URL: "https://a.example", Key: "saved", Tenant: "t_saved1", Namespace: "saved"}
	tests := map[string]struct {
		flags remoteFlags
		env   map[string]string
		saved Profile
		want  Profile
	}{
		"defaults":  {want: Profile{URL: DefaultURL, Tenant: "t_default", Namespace: "default"}},
		"a profile": {saved: saved, want: saved},
		"variables win over it": {
			env: map[string]string{"SOUS_KEY": "env", "SOUS_TENANT": "t_envir1", "SOUS_NAMESPACE": "env"}, saved: saved,
			want: Profile{URL: "https://a.example", Key: "env", Tenant: "t_envir1", Namespace: "env"},
		},
		"flags win over those": {
			flags: remoteFlags{key: "flag", tenant: "t_flags1", namespace: "flag"},
			env:   map[string]string{"SOUS_KEY": "env", "SOUS_TENANT": "t_envir1", "SOUS_NAMESPACE": "env"}, saved: saved,
			want: Profile{URL: "https://a.example", Key: "flag", Tenant: "t_flags1", Namespace: "flag"},
		},
		"a profile's key goes to no other server": {
			flags: remoteFlags{url: "https://b.example"}, saved: saved,
			want: Profile{URL: "https://b.example", Tenant: "t_saved1", Namespace: "saved"},
		},
		"nor where a variable says": {
			env: map[string]string{"SOUS_URL": "https://b.example"}, saved: saved,
			want: Profile{URL: "https://b.example", Tenant: "t_saved1", Namespace: "saved"},
		},
		"but to its own": {flags: remoteFlags{url: "https://a.example"}, saved: saved, want: saved},
		"also by default": {
			saved: Profile{Key: "local"},
			want:  Profile{URL: DefaultURL, Key: "local", Tenant: "t_default", Namespace: "default"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.flags.over(tt.saved, func(name string) string { return tt.env[name] })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfilesKeepEachOther(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "profiles.json")
	want := Profiles{Current: "a", Profiles: map[string]Profile{"a": {Key: "k"}, "b": {Tenant: "t_abcdef"}}}
	if err := want.Save(path); err != nil {
		t.Fatalf("Save: %v", err)
	}
	got, err := LoadProfiles(path)
	if err != nil {
		t.Fatalf("LoadProfiles: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("profiles (-want +got):\n%s", diff)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	for answer, yes := range map[string]bool{"y\n": true, "Yes\n": true, " y\n": true, "\n": false, "": false, "no\n": false} {
		var asked strings.Builder
		err := ask(strings.NewReader(answer), &asked, "Delete it?")
		if (err == nil) != yes || asked.String() != "Delete it? [y/N] " {
			t.Errorf(`ask with answer %q: got error %v and prompt %q, want consent: %v and prompt "Delete it? [y/N] "`, answer, err, asked.String(), yes)
		}
	}
}
