package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/safeurl"
)

// maxPages is the maximum number of pages that berth reads of a list. A page of Nova has up to 1,000 objects.
const maxPages = 1000

var (
	errTooManyPages = fmt.Errorf("the list has more than %d pages", maxPages)
	// errForeignLink means that the next page is not below the endpoint. Its address gets no request, because
	// the request would contain berth's token.
	errForeignLink = errors.New("the link to the next page does not begin with the address of the service")
)

// listAll returns the objects on all pages of a list; the function `extract` returns those of one page. The
// pages together may have the size that one answer may have.
func listAll[T any](
	ctx context.Context,
	client *gophercloud.ServiceClient,
	list pagination.Pager,
	extract func(pagination.Page) ([]T, error),
) ([]T, error) {
	return listLargePages(safeurl.LimitTotal(ctx), client, list, extract)
}

// listLargePages is like listAll, but each page may have the size that one answer may have. So the function
// `extract` must return little of each object. listLargePages follows only links to pages below the endpoint
// of the client.
func listLargePages[T any](
	ctx context.Context,
	client *gophercloud.ServiceClient,
	list pagination.Pager,
	extract func(pagination.Page) ([]T, error),
) (all []T, err error) {
	pages := 0
	err = list.EachPage(ctx, func(_ context.Context, page pagination.Page) (bool, error) {
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

// linkedList returns a list at an address of Nova or Neutron, whose objects are in the field `name` of each
// page. It serves lists for which gophercloud has no type, or one that does not find the link to the next
// page.
func linkedList(client *gophercloud.ServiceClient, address, name string) pagination.Pager {
	return pagination.NewPager(client, address, func(r pagination.PageResult) pagination.Page {
		return linkedPage{pagination.LinkedPageBase{PageResult: r}, name}
	})
}

// linkedPage is a page whose objects are in the field `name`, and whose link to the next page is in the field
// `name`_links.
type linkedPage struct {
	pagination.LinkedPageBase
	name string
}

// NextPageURL returns the link to the next page, or "" on the last page.
func (p linkedPage) NextPageURL() (string, error) {
	var fields map[string]json.RawMessage
	if err := p.ExtractInto(&fields); err != nil {
		return "", err
	}
	raw, is := fields[p.name+"_links"]
	if !is {
		return "", nil
	}
	var links []gophercloud.Link
	if err := json.Unmarshal(raw, &links); err != nil {
		return "", err
	}
	return gophercloud.ExtractNextURL(links)
}

// IsEmpty reports whether the page has no objects.
func (p linkedPage) IsEmpty() (bool, error) {
	all, err := extractLinked[map[string]any](p)
	return len(all) == 0, err
}

// extractLinked returns the objects of a page of a linkedList.
func extractLinked[T any](page pagination.Page) (all []T, err error) {
	p := page.(linkedPage)
	err = p.ExtractIntoSlicePtr(&all, p.name)
	return all, err
}
