package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"berth/internal/cloud"
	"berth/internal/lease"
)

// linkedPages is a transport that answers each request for a list with a page of one object. The pages of one
// list link to the next page as the function `next` says, which gets the number of requests so far.
type linkedPages struct {
	list     string // name of the list with links
	next     func(requests int) string
	padding  int // number of blanks on the page
	limit    int // number of requests after which linkedPages answers no more
	requests []string
}

var errTooManyRequests = errors.New("the test answers no more requests")

// RoundTrip implements http.RoundTripper.
func (p *linkedPages) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.requests = append(p.requests, r.URL.String()); len(p.requests) > p.limit {
		return nil, errTooManyRequests
	}
	if r.URL.Query().Has("flavor") {
		return answer(r, `{"servers":[]}`), nil
	}
	link := p.next(len(p.requests))
	page := "{" + strings.Repeat(" ", p.padding)
	for _, name := range []string{"servers", "images", "migrations", "networks", "ports", "subnets", "floatingips"} {
		links := `[]`
		if link != "" && name == p.list {
			links = fmt.Sprintf(`[{"rel":"next","href":%q}]`, link)
		}
		page += fmt.Sprintf(`"%s":[{"id":"%s","OS-EXT-SRV-ATTR:host":"cmp"}],"%[1]s_links":%[3]s,`, name, uuid.NewString(), links)
	}
	return answer(r, strings.TrimSuffix(page, ",")+"}"), nil
}

func answer(r *http.Request, body string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Request:    r,
		Body:       io.NopCloser(strings.NewReader(body)),
	}
}

// listCalls contains, for each list of Nova and Neutron that has pages, a reservation whose end begins with
// this list.
var listCalls = map[string]lease.CloudReservation{
	"floatingips": {Reservation: lease.Reservation{ReservationDraft: lease.ReservationDraft{Type: lease.FloatingIP}}},
	"networks":    {Reservation: lease.Reservation{ReservationDraft: lease.ReservationDraft{Type: lease.NetworkSegment}}},
	"servers":     snapshotOfHost,
	"images":      snapshotOfHost, // after one page of servers
	// after the access to the flavor, and the servers with the flavor
	"migrations": {Reservation: lease.Reservation{ReservationDraft: lease.ReservationDraft{Type: lease.VirtualInstance}}},
}

var snapshotOfHost = lease.CloudReservation{
	Reservation: lease.Reservation{ReservationDraft: lease.ReservationDraft{
		Type:      lease.PhysicalHost,
		BeforeEnd: "snapshot",
	}},
	ComputeHosts: []lease.ReservedHost{{Service: "cmp"}},
}

func TestList_HostileLinksEndWithAnError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		next     func(requests int) string
		padding  int
		requests int // the most that may be sent
	}{
		"circle":        {next: func(int) string { return "http://cloud.test/x/servers/detail?marker=1" }, requests: 1000},
		"endless":       {next: func(n int) string { return fmt.Sprintf("http://cloud.test/x/a?marker=%d", n) }, requests: 1000},
		"large":         {next: func(n int) string { return fmt.Sprintf("http://cloud.test/x/a?marker=%d", n) }, padding: 1 << 20, requests: 33},
		"another host":  {next: func(int) string { return "http://evil.test/x/a" }, requests: 1},
		"another port":  {next: func(int) string { return "http://cloud.test:80/x/a" }, requests: 1},
		"a longer name": {next: func(int) string { return "http://cloud.test.evil.test/x/a" }, requests: 1},
		"a user":        {next: func(int) string { return "http://cloud.test@evil.test/x/a" }, requests: 1},
		"another path":  {next: func(int) string { return "http://cloud.test/identity/v3/users" }, requests: 1},
		"dot segments":  {next: func(int) string { return "http://cloud.test/x/../identity/v3/users" }, requests: 1},
		"no address":    {next: func(int) string { return "evil" }, requests: 1},
	} {
		for list, claim := range listCalls {
			if name == "large" && list == "servers" {
				continue // each page has a limit of its own
			}
			t.Run(name+" of "+list, func(t *testing.T) {
				t.Parallel()
				pages := &linkedPages{list: list, next: tt.next, padding: tt.padding, limit: tt.requests + 10}
				c, err := cloud.New(cloud.Config{
					Nova:    "http://cloud.test/x",
					Neutron: "http://cloud.test/x",
					Wrap:    func(http.RoundTripper) http.RoundTripper { return pages },
				})
				if err != nil {
					t.Fatal(err)
				}
				most := tt.requests
				switch list {
				case "servers":
					err = c.BeforeEnd(t.Context(), claim)
				case "images":
					err, most = c.BeforeEnd(t.Context(), claim), most+1
				case "migrations":
					c.ReadConsumers(func(context.Context, uuid.UUID) ([]string, error) { return []string{"s"}, nil })
					err, most = c.Deprovision(t.Context(), claim), most+2
				default:
					err = c.Deprovision(t.Context(), claim)
				}
				if err == nil || len(pages.requests) > most {
					t.Errorf("read a list with hostile links: got error %v after %d requests, the last for %s; "+
						"want an error after at most %d requests", err, len(pages.requests),
						pages.requests[len(pages.requests)-1], most)
				}
			})
		}
	}
}

func TestList_HasTheObjectsOfAllPages(t *testing.T) {
	t.Parallel()
	pages := &linkedPages{list: "servers", limit: 100, next: func(n int) string {
		if n == 3 {
			return ""
		}
		return "http://cloud.test/x/servers/detail?marker=" + fmt.Sprint(n)
	}}
	c, err := cloud.New(cloud.Config{
		Nova: "http://cloud.test/x",
		Wrap: func(http.RoundTripper) http.RoundTripper { return pages },
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.BeforeEnd(t.Context(), listCalls["servers"])
	images := 0
	for _, address := range pages.requests {
		if strings.HasSuffix(address, "/action") {
			images++
		}
	}
	if len(pages.requests) < 3 || images == 0 {
		t.Errorf("read a list of three pages: got the requests %v, want one for each page", pages.requests)
	}
}
