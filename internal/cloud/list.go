package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/safeurl"
)

// maxPages is the maximum number of pages that listAll reads of a list. A page of Nova has up to 1,000
// objects.
const maxPages = 1000

var (
	errTooManyPages = fmt.Errorf("the list has more than %d pages", maxPages)
	// errForeignLink means that the next page is not below the endpoint. Its address gets no request, because
	// the request would contain berth's token.
	errForeignLink = errors.New("the link to the next page does not begin with the address of the service")
)

// listAll returns the objects on all pages of a list; the function `extract` returns those of one page. The
// pages together may have the size that one answer may have. listAll follows only links to pages below the
// endpoint of the client.
func listAll[T any](
	ctx context.Context,
	client *gophercloud.ServiceClient,
	list pagination.Pager,
	extract func(pagination.Page) ([]T, error),
) (all []T, err error) {
	pages := 0
	err = list.EachPage(safeurl.LimitTotal(ctx), func(_ context.Context, page pagination.Page) (bool, error) {
		objects, err := extract(page)
		if err != nil {
			return false, err
		}
		all = append(all, objects...)
		next, err := page.NextPageURL()
		switch pages++; {
		case err != nil:
			return false, err
		case next != "" && !strings.HasPrefix(next, client.Endpoint):
			return false, fmt.Errorf("%w: %q", errForeignLink, next)
		case next != "" && pages == maxPages:
			return false, errTooManyPages
		}
		return true, nil
	})
	return all, err
}

// listMatching returns the objects on all pages of a list for which the function `matches` returns true.
// Neutron ignores the filters of extensions that are not loaded, and berth deletes the objects of some lists.
// So `matches` checks what the filter of the list requests.
func listMatching[T any](
	ctx context.Context,
	client *gophercloud.ServiceClient,
	list pagination.Pager,
	extract func(pagination.Page) ([]T, error),
	matches func(T) bool,
) ([]T, error) {
	all, err := listAll(ctx, client, list, extract)
	return slices.DeleteFunc(all, func(one T) bool { return !matches(one) }), err
}
