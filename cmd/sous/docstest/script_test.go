package docstest

import (
	"fmt"
	"path"
	"strings"
)

// mark begins the line that the shell prints before each block.
const mark = "---8<--- block "

// prelude is what every shell script starts with. A documentation shows plain curl, for
// which an answer of 400 or more is a success; here it fails unless the block expects it.
// Programs in the background end with the script.
const prelude = `set -e
pids=
end() {
	for pid in $pids; do kill "$pid" 2>/dev/null || true; done
	wait
}
trap end EXIT
curl() { command curl -s --fail-with-body --max-time 30 "$@"; }
# await FILE TEXT: until the file has a line with the text, for at most 10 seconds.
await() {
	tries=0
	until grep -qF -e "$2" "$1" || [ "$tries" -ge 200 ]; do sleep 0.05; tries=$((tries + 1)); done
}
`

// script returns the shell script that runs the blocks of a page. It prints the line
// mark and a number before the output of each block, and a last one at its end.
func script(blocks []*block) string {
	var s strings.Builder
	s.WriteString(prelude)
	for i, b := range blocks {
		fmt.Fprintf(&s, "printf '\\n%s%d\\n'\n", mark, i)
		switch {
		case b.title != "":
			fmt.Fprintf(&s, "mkdir -p '%s'\ncat >'%s' <<'END OF FILE'\n%sEND OF FILE\n", path.Dir(b.title), b.title, b.code)
		case b.language != "sh" || b.skip != "":
		case b.inBack:
			// exec, so that the id is that of the program.
			fmt.Fprintf(&s, "( exec %s\n) >.background.%d 2>&1 &\npids=\"$pids $!\"\nawait .background.%d ''\n", strings.TrimSpace(b.code), i, i)
		case b.exit != 0:
			// A subshell on the left of || would ignore set -e.
			fmt.Fprintf(&s, "set +e\n( set -e\n%s)\ncode=$?\nset -e\n[ $code = %d ] || { echo \"exit code $code, want %d\"; exit 1; }\n", b.code, b.exit, b.exit)
		default:
			s.WriteString(b.code)
		}
	}
	for i, b := range blocks {
		if b.inBack && b.expected != nil {
			fmt.Fprintf(&s, "await .background.%d '%s'\n", i, strings.ReplaceAll(lastText(b.expected.code), "'", `'\''`))
		}
	}
	fmt.Fprintf(&s, "printf '\\n%s%d\\n'\n", mark, len(blocks))
	return s.String()
}

// lastText returns the last text of an expected output, without the wildcards.
func lastText(expected string) string {
	parts := strings.FieldsFunc(expected, func(r rune) bool { return r == '…' || r == '\n' })
	for i := len(parts) - 1; i >= 0; i-- {
		if part := strings.TrimSpace(parts[i]); part != "" {
			return part
		}
	}
	return ""
}
