package blazar

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"berth/internal/api/osapi"
	"berth/internal/lease"
	"berth/internal/store/db"
)

// pageItems is the maximum number of items of a list that berth reads from the database at once.
var pageItems = 100

// list is a list of the API. Clients can ask for a part of the list with the query parameters limit and
// marker; without limit, the answer has all items, because Blazar's own lists have no pages.
type list[T any] struct {
	name string // key of the items in the answer
	noun string // what error messages call an item
	// read returns the items that come after another one, at most `most`, or the first items if `after` is
	// the zero value. The result `last` is true if no item follows.
	read func(ctx context.Context, after T, most int) (items []T, last bool, err error)
	// find returns the item that a marker names, or db.ErrNotFound if the caller may see no such item.
	find    func(ctx context.Context, marker string) (T, error)
	visible func(T) bool // whether the caller may see an item; nil: the caller may see every item
	view    func(T) any  // the JSON object of an item
}

// answer answers a request for the list. As in Blazar, other query parameters than limit and marker are
// ignored here.
func (l list[T]) answer(r *http.Request) (int, any, error) {
	limit, err := limitOf(r)
	if err != nil {
		return 0, nil, err
	}
	var after T
	if marker := r.URL.Query().Get("marker"); marker != "" {
		after, err = l.find(r.Context(), marker)
		if errors.Is(err, db.ErrNotFound) {
			err = lease.Faultf(lease.InvalidInput, "The marker %s is not a %s.", excerpt(marker), l.noun)
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return osapi.StreamList(r, l.name, nil, l.pages(after, limit))
}

// pages returns a function that reads the next views of the list at each call, as visibleItems reads items.
func (l list[T]) pages(after T, limit int) func(context.Context) ([]any, bool, error) {
	next := l.visibleItems(after, limit)
	return func(ctx context.Context) (views []any, last bool, err error) {
		items, last, err := next(ctx)
		for _, item := range items {
			views = append(views, l.view(item))
		}
		return views, last, err
	}
}

// visibleItems returns a function that reads the next items of the list at each call. Altogether it returns
// at most `limit` items that come after `after`; a limit of 0 stands for all items. Items that the caller may
// not see do not count.
func (l list[T]) visibleItems(after T, limit int) func(context.Context) ([]T, bool, error) {
	left := limit
	return func(ctx context.Context) (visible []T, last bool, err error) {
		most := pageItems
		if limit > 0 && l.visible == nil {
			most = min(most, left)
		}
		items, last, err := l.read(ctx, after, most)
		if err != nil || len(items) == 0 {
			return nil, last, err
		}
		after = items[len(items)-1]
		for _, item := range items {
			if l.visible == nil || l.visible(item) {
				visible = append(visible, item)
			}
		}
		if limit > 0 {
			visible = visible[:min(len(visible), left)]
			left -= len(visible)
			last = last || left == 0
		}
		return visible, last, nil
	}
}

// limitOf reads the query parameter limit. Without the parameter, limitOf returns 0.
func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 {
		return 0, lease.Faultf(lease.InvalidInput, "The limit must be a positive integer, not %s.",
			excerpt(text))
	}
	return limit, nil
}

// shorterIsLast adapts a function that returns fewer than `most` items only at the end of a list to the field
// read of a list.
func shorterIsLast[T any](
	read func(ctx context.Context, after T, most int) ([]T, error),
) func(context.Context, T, int) ([]T, bool, error) {
	return func(ctx context.Context, after T, most int) ([]T, bool, error) {
		items, err := read(ctx, after, most)
		return items, len(items) < most, err
	}
}
