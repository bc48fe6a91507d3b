package priority

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fake is a process whose processor time and nice value are those of the test.
type fake struct {
	cpu     time.Duration
	nice    int
	refuses bool // to lower it
}

func (f *fake) CPU() time.Duration { return f.cpu }

func (f *fake) SetNice(nice int) error {
	if f.refuses && nice < f.nice {
		return ErrLower
	}
	f.nice = nice
	return nil
}

// crowd is the processes of a test, by name.
type crowd struct {
	planner *Planner
	list    []Process
	refused []Process // of the last interval
}

// add adds n processes of a tenant.
func (c *crowd) add(tenant string, n int) {
	for range n {
		c.list = append(c.list, Process{Tenant: tenant, Weight: 100, Child: &fake{}})
	}
}

// interval lets the processes of each tenant use so much processor time, and returns the nice
// values after it, by tenant, with the number of its processes that have them.
func (c *crowd) interval(used map[string]time.Duration) map[string]map[int]int {
	for k := range c.list {
		c.list[k].Child.(*fake).cpu += used[c.list[k].Tenant]
	}
	_, _, c.refused = c.planner.Round(c.list)
	for k := range c.list {
		c.list[k].Nice = c.list[k].Child.(*fake).nice
	}
	out := map[string]map[int]int{}
	for _, process := range c.list {
		if out[process.Tenant] == nil {
			out[process.Tenant] = map[int]int{}
		}
		out[process.Tenant][process.Nice]++
	}
	return out
}

func TestNice(t *testing.T) {
	t.Parallel()
	got := map[int]int{}
	for _, n := range []int{1, 2, 5, 10, 40, 80, 1000} {
		got[n] = Nice(n, 100)
	}
	if diff := cmp.Diff(map[int]int{1: 0, 2: 3, 5: 7, 10: 10, 40: 17, 80: 19, 1000: 19}, got); diff != "" {
		t.Errorf("nice values by number (-want +got):\n%s", diff)
	}
	if got := Nice(10, 1000); got != 0 {
		t.Errorf("nice value of 10 processes with a weight of 10 usual tenants: got %d, want 0", got)
	}
}

// TestManyBusyProcessesAreNice until they are few or calm; those that wait, and those of
// others, keep their weight.
func TestManyBusyProcessesAreNice(t *testing.T) {
	t.Parallel()
	c := &crowd{planner: NewPlanner(2)}
	c.add("attacker", 80)
	c.add("sleeper", 80)
	c.add("victim", 2)
	busy := map[string]time.Duration{"attacker": 2500 * time.Microsecond, "victim": 20 * time.Millisecond}
	c.interval(busy)
	want := map[string]map[int]int{"attacker": {19: 80}, "sleeper": {0: 80}, "victim": {0: 2}}
	if diff := cmp.Diff(want, c.interval(busy)); diff != "" {
		t.Errorf("while they compute (-want +got):\n%s", diff)
	}
	for range calm - 1 {
		c.interval(nil)
	}
	if diff := cmp.Diff(want, c.interval(map[string]time.Duration{"victim": time.Millisecond})); diff == "" {
		t.Errorf("%d intervals after they computed: got nice values %v, want none", calm, want)
	}
}

// TestManyLightProcessesKeepTheirWeight: those that use the processor little.
func TestManyLightProcessesKeepTheirWeight(t *testing.T) {
	t.Parallel()
	c := &crowd{planner: NewPlanner(2)}
	c.add("light", 40)
	for range 5 {
		c.interval(map[string]time.Duration{"light": time.Millisecond})
	}
	if diff := cmp.Diff(map[string]map[int]int{"light": {0: 40}}, c.interval(nil)); diff != "" {
		t.Errorf("nice values (-want +got):\n%s", diff)
	}
}

// TestRefusedProcessesAreReported so that others take their place.
func TestRefusedProcessesAreReported(t *testing.T) {
	t.Parallel()
	c := &crowd{planner: NewPlanner(2)}
	c.add("attacker", 10)
	for _, process := range c.list {
		process.Child.(*fake).refuses = true
	}
	for range 3 {
		c.interval(map[string]time.Duration{"attacker": 20 * time.Millisecond})
	}
	if c.refused != nil {
		t.Errorf("while they compute: got %d refused, want none", len(c.refused))
	}
	for range calm {
		c.interval(nil)
	}
	if len(c.refused) != 10 {
		t.Errorf("when they are calm: got %d refused, want 10", len(c.refused))
	}
}

// TestSet sets the value of all threads of a process, and reports that it cannot be lowered
// without a privilege.
func TestSet(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatalf("cmd.Start: %v", err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if err := Set(cmd.Process.Pid, 19); err != nil {
		t.Fatalf("Set to 19: %v", err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	if got := strings.Fields(string(text))[18]; got != "19" {
		t.Errorf("nice value of the process: got %s, want 19", got)
	}
	err = Set(cmd.Process.Pid, 0)
	if os.Geteuid() == 0 && err != nil || os.Geteuid() != 0 && !errors.Is(err, ErrLower) && err != nil {
		t.Errorf("Set to 0: got %v, want nil, or %v without a privilege", err, ErrLower)
	}
}
