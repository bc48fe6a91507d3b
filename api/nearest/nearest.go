// Package nearest finds the name that a misspelt one was probably meant to be.
package nearest

import "strings"

// within is the largest number of edits between a name and the one that is suggested.
const within = 2

// Name returns the one of known that name was probably meant to be, "" if none is similar:
// the first with the fewest characters to insert, remove or replace (Levenshtein), at most two
// and fewer than half of the characters. Upper and lower case count as equal.
//
//	Name("statee", []string{"cursor", "limit", "state"})  "state"
func Name(name string, known []string) string {
	meant, least := "", within+1
	for _, k := range known {
		// The difference of the lengths bounds the distance, and so the work for a long name.
		if len(name)-len(k) > within || len(k)-len(name) > within {
			continue
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < least && 2*d < max(len(name), len(k)) {
			meant, least = k, d
		}
	}
	return meant
}

// editDistance returns the number of bytes to insert, remove or replace to make b of a
// (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
