package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/codesous/sous/api"
)

// PageOptions selects a page of a list. An empty Cursor is its beginning, a Limit of 0 the
// server's default.
type PageOptions struct {
	Cursor string
	Limit  int
}

func (o PageOptions) query() url.Values {
	q := url.Values{}
	if o.Cursor != "" {
		q.Set("cursor", o.Cursor)
	}
	if o.Limit != 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	return q
}

// All iterates over a list to its end, page by page, from o on. It stops after the first
// error, which it yields with a zero item. It continues over empty pages that have a cursor.
func All[T any](ctx context.Context, list func(context.Context, PageOptions) (api.Page[T], error), o PageOptions) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			page, err := list(ctx, o)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			o.Cursor = *page.NextCursor
		}
	}
}
