package intl

import (
	"unicode"
	"unicode/utf16"

	"github.com/rivo/uniseg"
)

// Segmenter is an Intl.Segmenter.
type Segmenter struct{ Locale, Granularity string }

// NewSegmenter makes one.
func NewSegmenter(tags []Tag, granularity string) *Segmenter {
	locale, _ := resolveLocale(tags)
	return &Segmenter{locale, granularity}
}

// Segment is a part of a text: from and to are in UTF-16 code units.
type Segment struct {
	From, To int
	WordLike bool
}

// Split returns the segments of a text, by the default rules of Unicode
// (https://www.unicode.org/reports/tr29/).
func (s *Segmenter) Split(text string) []Segment {
	var out []Segment
	at := 0
	state := -1
	for text != "" {
		var part string
		switch s.Granularity {
		case "word":
			part, text, state = uniseg.FirstWordInString(text, state)
		case "sentence":
			part, text, state = uniseg.FirstSentenceInString(text, state)
		default:
			part, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		}
		segment := Segment{From: at}
		for _, c := range part {
			at += utf16.RuneLen(c)
			segment.WordLike = segment.WordLike || unicode.IsLetter(c) || unicode.IsNumber(c)
		}
		segment.To = at
		out = append(out, segment)
	}
	return out
}
