package command

import "testing"

// Control characters in a name do not move a cell of a table.
func TestTablesPrintNoControls(t *testing.T) {
	t.Parallel()
	got := Table([]string{"WHO", "PATH"}, [][]string{
		{"a", "/x\x1b[2J\r\nb\tFAKE\u202e\u009b"},
		{"é", "日本 'ok'"},
	})
	want := "WHO  PATH\n" +
		`a    /x\x1b[2J\r\nb\tFAKE\u202e\u009b` + "\n" +
		"é    日本 'ok'\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
