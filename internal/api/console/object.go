package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/api/osapi"
	"berth/internal/network"
	"berth/internal/store/db"
)

// objectView is the content of the page of one object.
type objectView struct {
	Kind     string // port, trunk, lease, journal entry, host, resource provider or consumer
	Name     string
	Status   string
	Good     bool   // nothing is left to do for the object
	Why      string // one sentence
	Waits    []wait
	Facts    []fact
	Tables   []table
	Timeline []moment
	Omitted  bool   // the timeline has older moments
	Temporal string // URL of the object's workflow in Temporal's UI; empty: none
	Command  string // the command of starter that shows the same
}

func (v objectView) title() string { return v.Kind + " " + v.Name }

// wait is one party for which the object waits.
type wait struct {
	For      string
	Path     string // page of the party; empty: none
	Since    time.Time
	Deadline *time.Time
}

// fact is one attribute of an object.
type fact struct {
	Name, Value string
	Path        string // page to which the value leads, below the path of the console; empty: none
}

// table lists parts of an object. The first cell of each row is its header.
type table struct {
	Title   string
	Columns []string
	Rows    [][]fact // the field Name of a cell is empty
}

// moment is one entry of the timeline of an object.
type moment struct {
	At   time.Time
	Part string // port, trunk, journal, allocation or lease
	Text string
	Path string
	Due  bool // the moment lies in the future
}

// maxMoments is the maximum number of moments of each kind that a timeline shows.
const maxMoments = 50

// newestFirst sorts the timeline of an object, and marks the moments that lie in the future.
func (v *objectView) newestFirst(now time.Time) {
	// the page shows the status beside the sentence
	v.Why = strings.TrimPrefix(strings.TrimPrefix(v.Why, v.Status), ": ")
	for i := range v.Timeline {
		v.Timeline[i].Due = v.Timeline[i].At.After(now)
	}
	slices.SortStableFunc(v.Timeline, func(a, b moment) int { return b.At.Compare(a.At) })
}

// link lets the attribute with the given name lead to a page.
func (v *objectView) link(name, path string) {
	for i := range v.Facts {
		if v.Facts[i].Name == name {
			v.Facts[i].Path = path
		}
	}
}

// addWaiting adds what an object waits for, and when it began to wait. The parameter `part` is the kind of
// the object in the timeline.
func (v *objectView) addWaiting(part string, waiting []network.Waiting) {
	for _, w := range waiting {
		v.Waits = append(v.Waits,
			wait{For: strings.TrimSuffix(w.Entity+" on "+w.Host, " on "), Since: w.Since, Deadline: w.Deadline})
		v.Timeline = append(v.Timeline,
			moment{At: w.Since, Part: part, Text: "begins to wait for " + w.Entity})
		if w.Deadline != nil {
			v.Timeline = append(v.Timeline,
				moment{At: *w.Deadline, Part: part, Text: "deadline of " + w.Entity})
		}
	}
}

// temporalURL returns the URL of a workflow in Temporal's UI, or "" if the URL of the UI is not known.
func (c *handler) temporalURL(workflow string) string {
	if c.TemporalUI == "" {
		return ""
	}
	return strings.TrimRight(c.TemporalUI, "/") +
		"/namespaces/" + url.PathEscape(c.Namespace) +
		"/workflows/" + url.PathEscape(workflow)
}

// find redirects to the page of the object with the ID in the query, or of the host or the port with the name
// in the query.
func (c *handler) find(r *http.Request) (int, any, error) {
	text, err := searched(r, "an ID, or the name of a port or a host")
	if err != nil {
		return 0, nil, err
	}
	path, err := c.pathOf(r.Context(), text)
	if err != nil {
		return 0, nil, err
	}
	if path == "" {
		return 0, nil, osapi.Fault(http.StatusNotFound, "",
			"No port, trunk, lease, resource provider, consumer, host or journal entry has the ID %q, and no port or host has this name.",
			text)
	}
	return redirect(r, path)
}

// searched returns the text of a search. The parameter `what` says what the caller can search for.
func searched(r *http.Request, what string) (string, error) {
	text := strings.TrimSpace(r.URL.Query().Get("id"))
	if text == "" {
		return "", osapi.Fault(http.StatusBadRequest, "", "Enter %s.", what)
	}
	return text, nil
}

// redirect redirects to a path below the path of the console.
func redirect(r *http.Request, path string) (int, any, error) {
	osapi.Header(r.Context()).Set("Location", basePath(r)+path)
	return http.StatusSeeOther, nil, nil
}

// pathOf returns the path of the page of the object with the given ID, or of the host or the port with the
// given name, or "" if no object has it. A port may have the name of a host: then the host has precedence.
func (c *handler) pathOf(ctx context.Context, text string) (string, error) {
	if seq, err := strconv.ParseInt(text, 10, 64); err == nil && seq > 0 {
		_, _, _, err := c.Journal.JournalEntry(ctx, seq)
		return existing("/entries/"+text, err)
	}
	if consumerPattern.MatchString(text) {
		return c.pathOfID(ctx, text)
	}
	host, err := c.hostLink(ctx, text)
	if host.Path != "" || err != nil {
		return host.Path, err
	}
	if path, err := c.waitingPathOf(ctx, text); path != "" || err != nil {
		return path, err
	}
	return c.pathOfPort(ctx, text)
}

// pathOfPort returns the path of the page of the port with a name, or of the list of the ports if several
// have the name, or "" if none has it.
func (c *handler) pathOfPort(ctx context.Context, name string) (string, error) {
	ports, err := c.portsNamed(ctx, name, 2)
	switch {
	case err != nil || len(ports) == 0:
		return "", err
	case len(ports) == 1:
		return "/ports/" + ports[0].ID.String(), nil
	}
	return "/ports?" + url.Values{"name": {name}}.Encode(), nil
}

// pathOfID returns the path of the page of the object with the given ID, or "" if no object has it.
func (c *handler) pathOfID(ctx context.Context, text string) (string, error) {
	lower := strings.ToLower(text)
	if id, ok := osapi.UUID(lower); ok {
		for _, kind := range []struct {
			path string
			read func() error
		}{
			{"/ports/", func() error { _, err := c.Network.Port(ctx, id); return err }},
			{"/trunks/", func() error { _, err := c.Network.Trunk(ctx, id); return err }},
			{"/leases/", func() error { _, err := c.Lease.Lease(ctx, id); return err }},
			{"/providers/", func() error { _, err := c.Inventory.Provider(ctx, lower); return err }},
		} {
			if path, err := existing(kind.path+lower, kind.read()); path != "" || err != nil {
				return path, err
			}
		}
	}
	for _, id := range []string{text, lower} {
		if path, err := existing("/consumers/"+id, c.findConsumer(ctx, id)); path != "" || err != nil {
			return path, err
		}
	}
	return "", nil
}

// waitingPathOf returns the path of the page with the objects that wait for a host, or "" if none does. If
// they wait for several parties on the host, the page is that of the party with the longest wait.
func (c *handler) waitingPathOf(ctx context.Context, host string) (string, error) {
	groups, err := c.Report.Waiting(ctx)
	if err != nil {
		return "", err
	}
	for _, g := range groups {
		if path := groupView(g, time.Now()).Path; g.Host == host && path != "" {
			return path, nil
		}
	}
	return "", nil
}

// existing returns the path if err is nil, and "" without an error if err says that the object does not
// exist.
func existing(path string, err error) (string, error) {
	if errors.Is(err, db.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// named returns the name of an object, or its ID if it has no name.
func named(name, id string) string { return cmp.Or(name, id) }
