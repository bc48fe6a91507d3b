package mirror

import (
	"hash/fnv"
	"strings"
)

// rowBits is the number of bits of a row that distinguish the rows of one millisecond.
const rowBits = 20

// RowOf returns the row of the record with that id, which was created at ms, a Unix time in
// milliseconds. Rows are in the order of creation. If another record has the row, the next free
// one after it is taken.
func RowOf(ms int64, id string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return FirstRow(ms) | int64(h.Sum32()>>(32-rowBits))
}

// FirstRow returns the lowest row of records that were created at ms.
func FirstRow(ms int64) int64 { return ms << rowBits }

// TenantWord returns the word of a tenant in the full-text tables. It begins with a character of the
// private use, which queries cannot have, so that no query finds it.
func TenantWord(tenant string) string { return "\ue000" + strings.ReplaceAll(tenant, "_", "") }
