package child

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// consoleState is what methods of console remember within an activation.
type consoleState struct {
	indent string
	counts map[string]int
	timers map[string]time.Time
}

// maxConsoleLabels bounds the counters and the timers, and the depth of groups.
const maxConsoleLabels = 1000

// consoleRows are the methods beside those that only log.
func consoleRows() []row {
	log := func(name string, f func(*realm, []goja.Value)) row {
		return row{name, function(name, 0, func(r *realm, call goja.FunctionCall) goja.Value {
			if r.effect() {
				f(r, call.Arguments)
			}
			return goja.Undefined()
		})}
	}
	return []row{
		log("table", (*realm).consoleTable),
		log("dir", func(r *realm, args []goja.Value) { r.logArguments(levelInfo, args[:min(1, len(args))]) }),
		log("clear", func(*realm, []goja.Value) {}), // a log has nothing to clear
		log("dirxml", func(r *realm, args []goja.Value) { r.logArguments(levelInfo, args) }),
		log("assert", (*realm).consoleAssert),
		log("group", (*realm).consoleGroup),
		log("groupCollapsed", (*realm).consoleGroup),
		log("groupEnd", func(r *realm, _ []goja.Value) {
			r.act.logs.console.indent = strings.TrimPrefix(r.act.logs.console.indent, "  ")
		}),
		log("count", (*realm).consoleCount),
		log("countReset", func(r *realm, args []goja.Value) { delete(r.act.logs.console.counts, consoleLabel(args)) }),
		log("time", (*realm).consoleTime),
		log("timeLog", func(r *realm, args []goja.Value) { r.consoleTimeLog(args) }),
		log("timeEnd", func(r *realm, args []goja.Value) {
			r.consoleTimeLog(args)
			delete(r.act.logs.console.timers, consoleLabel(args))
		}),
	}
}

func consoleLabel(args []goja.Value) string {
	if len(args) == 0 || goja.IsUndefined(args[0]) {
		return "default"
	}
	return args[0].String()
}

func (r *realm) consoleAssert(args []goja.Value) {
	if len(args) > 0 && args[0].ToBoolean() {
		return
	}
	text := "Assertion failed"
	if len(args) > 1 {
		text += ": " + r.format(args[1:])
	}
	r.log(levelWarn, false, []byte(text))
}

func (r *realm) consoleGroup(args []goja.Value) {
	if len(args) > 0 {
		r.log(levelInfo, false, []byte(r.format(args)))
	}
	if s := &r.act.logs.console; len(s.indent) < maxConsoleLabels {
		s.indent += "  "
	}
}

func (r *realm) consoleCount(args []goja.Value) {
	s := &r.act.logs.console
	label := consoleLabel(args)
	if s.counts == nil {
		s.counts = make(map[string]int)
	}
	if _, known := s.counts[label]; !known && len(s.counts) >= maxConsoleLabels {
		return
	}
	s.counts[label]++
	r.log(levelInfo, false, []byte(fmt.Sprintf("%s: %d", label, s.counts[label])))
}

func (r *realm) consoleTime(args []goja.Value) {
	s := &r.act.logs.console
	if s.timers == nil {
		s.timers = make(map[string]time.Time)
	}
	if len(s.timers) < maxConsoleLabels {
		s.timers[consoleLabel(args)] = time.Now()
	}
}

func (r *realm) consoleTimeLog(args []goja.Value) {
	label := consoleLabel(args)
	begun, ok := r.act.logs.console.timers[label]
	if !ok {
		return
	}
	text := fmt.Sprintf("%s: %.3fms", label, float64(time.Since(begun))/float64(time.Millisecond))
	if len(args) > 1 {
		text += " " + r.format(args[1:])
	}
	r.log(levelInfo, false, []byte(text))
}

// consoleTable logs the rows of an array or an object as a table, in Node's form.
func (r *realm) consoleTable(args []goja.Value) {
	var data *goja.Object
	if len(args) > 0 {
		data, _ = args[0].(*goja.Object)
	}
	if data == nil {
		r.logArguments(levelInfo, args)
		return
	}
	t := &table{realm: r, header: []string{"(index)"}}
	if len(args) > 1 {
		if wanted, ok := args[1].(*goja.Object); ok {
			r.vm.ForOf(wanted, func(v goja.Value) bool {
				t.column(v.String())
				return len(t.header) < inspectItems
			})
			t.fixed = true
		}
	}
	switch data.ExportType() {
	case mapType, setType:
		n := 0
		r.vm.ForOf(data, func(item goja.Value) bool {
			if pair, ok := item.(*goja.Object); ok && data.ExportType() == mapType {
				t.row(r.cell(pair.Get("0")), pair.Get("1"))
			} else {
				t.row(fmt.Sprint(n), item)
			}
			n++
			return n < inspectItems
		})
	default:
		for _, key := range data.Keys()[:min(len(data.Keys()), inspectItems)] {
			t.row(key, data.Get(key))
		}
	}
	r.log(levelInfo, false, []byte(t.text()))
}

// table is the cells of console.table.
type table struct {
	*realm
	header []string
	fixed  bool // the columns were chosen
	rows   []map[string]string
	values bool // a row is no object
}

// valuesColumn holds the rows that are no objects.
const valuesColumn = "Values"

func (t *table) column(name string) bool {
	for _, known := range t.header[1:] {
		if known == name {
			return true
		}
	}
	if t.fixed || len(t.header) > inspectItems {
		return false
	}
	t.header = append(t.header, name)
	return true
}

func (r *realm) cell(v goja.Value) string {
	var b strings.Builder
	r.inspect(&b, v, 0)
	return strings.ReplaceAll(b.String(), "\n", " ")
}

func (t *table) row(index string, v goja.Value) {
	cells := map[string]string{"(index)": index}
	obj, ok := v.(*goja.Object)
	if _, function := goja.AssertFunction(v); !ok || function {
		cells[valuesColumn] = t.cell(v)
		t.values = true
	} else {
		for _, key := range obj.Keys() {
			if t.column(key) {
				cells[key] = t.cell(obj.Get(key))
			}
		}
	}
	t.rows = append(t.rows, cells)
}

func (t *table) text() string {
	header := t.header
	if t.values {
		header = append(header, valuesColumn)
	}
	widths := make([]int, len(header))
	for i, name := range header {
		widths[i] = utf8.RuneCountInString(name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[name]))
		}
	}
	var b strings.Builder
	rule := func(left, middle, right string) {
		for i, w := range widths {
			b.WriteString(map[bool]string{true: left, false: middle}[i == 0])
			b.WriteString(strings.Repeat("─", w+2))
		}
		b.WriteString(right)
	}
	line := func(cell func(name string) string) {
		for i, name := range header {
			text := cell(name)
			b.WriteString("│ " + text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+1))
		}
		b.WriteString("│\n")
	}
	rule("┌", "┬", "┐\n")
	line(func(name string) string { return name })
	rule("├", "┼", "┤\n")
	for _, row := range t.rows {
		line(func(name string) string { return row[name] })
	}
	rule("└", "┴", "┘")
	return b.String()
}
