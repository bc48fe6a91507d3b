package rest

import (
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether a client prefers gzip to a body without encoding, by its
// Accept-Encoding (RFC 9110, section 12.5.3).
//
//	gzip, deflate, br              true
//	*                              true
//	gzip;q=0, *                    false
//	gzip;q=0.5, identity           false
//	(no header)                    false
func AcceptsGzip(h http.Header) bool {
	gzipQ, identityQ, anyQ := -1.0, -1.0, -1.0
	for _, value := range h["Accept-Encoding"] {
		for item := range strings.SplitSeq(value, ",") {
			coding, parameters, _ := strings.Cut(item, ";")
			q := quality(parameters)
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				gzipQ = q
			case "identity":
				identityQ = q
			case "*":
				anyQ = q
			}
		}
	}
	if gzipQ < 0 {
		gzipQ = anyQ
	}
	return gzipQ > 0 && gzipQ >= identityQ
}

// quality returns the weight among the parameters of an item of Accept-Encoding: 1 without
// one, and 0 for one that is malformed.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || q < 0 || q > 1 {
			return 0
		}
		return q
	}
	return 1
}
