package neutron

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
	"berth/internal/store/db"
	"berth/internal/store/portstore"
)

// resource handles one kind of object, such as ports. resource has the table of the object's attributes and
// the functions that authorize, read and change the object. The type parameter N is the type of the object;
// the type parameter C is the type of the change that a request makes to the object.
type resource[N, C any] struct {
	singular     string // key of a body with one object
	notFoundType string // error type for an unknown ID
	notFoundText string // end of the error message for an unknown ID; empty: "could not be found."
	attributes   []attribute.Definition[N, C]
	// filters whose key is not an attribute
	filters map[string]func(values []string) ([]db.Condition, error)

	// limits of a project, by singular
	quota func(ctx context.Context, project string) (network.Quota, error)
	// owner that a request names; may return nil
	project  func(C) *string
	id       func(N) uuid.UUID
	view     func(N, *access) object
	revision func(N) int64 // nil: the objects have no revision
	tags     tagAccess[N, C]
	// adds attributes that the objects in the response to a list request lack; may be nil
	addSingleOnly func(N, *access, object)
	list          func(context.Context, db.Listing) ([]N, error)
	// lists only the IDs; nil: list reads all objects of a list at once
	ids    func(context.Context, db.Listing) ([]uuid.UUID, error)
	create func(context.Context, []C) ([]N, error)
	update func(context.Context, uuid.UUID, C, *int64) (N, error)
	remove func(context.Context, uuid.UUID, *int64) error
	target targetRule[N]
	// fills in the owner of a new object and checks whether these rules allow the caller to create it
	prepareCreate func(*http.Request, *C, []string) error
	// checks a change that the rules allow; a nil change is a delete; may be nil
	authorizeChange func(*http.Request, N, *C) error
}

func (res resource[N, C]) label() string {
	return strings.ReplaceAll(strings.ToUpper(res.singular[:1])+res.singular[1:], "_", " ")
}

// path returns the path of the collection.
func (res resource[N, C]) path() string {
	return "/v2.0/" + strings.ReplaceAll(res.singular, "_", "-") + "s"
}

func (res resource[N, C]) routes() []osapi.Route {
	collectionPath, memberPath := res.path(), res.path()+"/{id}"
	return []osapi.Route{
		{Method: http.MethodGet, Path: collectionPath, Handle: res.serveList},
		{Method: http.MethodPost, Path: collectionPath, Handle: res.serveCreate},
		{Method: http.MethodGet, Path: memberPath, Handle: res.serveShow},
		{Method: http.MethodPut, Path: memberPath, Handle: res.serveUpdate},
		{Method: http.MethodDelete, Path: memberPath, Handle: res.serveDelete},
	}
}

func (res resource[N, C]) serveList(r *http.Request) (int, any, error) {
	l, err := res.listRequest(r)
	if err != nil {
		return 0, nil, err
	}
	pages, err := res.readList(r, l)
	if err != nil {
		return 0, nil, err
	}
	var more object
	if l.Limit > 0 {
		more = object{res.singular + "s_links": links(r, l, pages.all)}
	}
	return osapi.StreamList(r, res.singular+"s", more, pages.next)
}

// find returns the object with the given ID if the caller can see the object. If the parameter `text` is not
// a UUID, find returns the error "not found" and not "invalid", because clients first request an object's
// name as if it were an ID.
func (res resource[N, C]) find(r *http.Request, text string) (found N, id uuid.UUID, err error) {
	id, ok := osapi.UUID(strings.ToLower(text))
	if ok {
		some, err := res.listVisible(r.Context(),
			db.Listing{Where: []db.Condition{{Field: "id", In: []string{id.String()}}}})
		if err != nil {
			return found, id, err
		}
		if len(some) == 1 {
			return some[0], id, nil
		}
	}
	return found, id, res.notFound(text)
}

// notFound returns the error for an ID of which the caller sees no object.
func (res resource[N, C]) notFound(id string) error {
	return osapi.Fault(http.StatusNotFound, res.notFoundType, "%s %s %s",
		res.label(), excerpt(id), cmp.Or(res.notFoundText, "could not be found."))
}

// findAll reads the objects with the given IDs with one call of the store, without attributes that can be
// large. findAll returns an error unless the caller can see each of the objects.
func (res resource[N, C]) findAll(r *http.Request, ids []uuid.UUID) ([]N, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := res.listVisible(
		r.Context(),
		db.Listing{Where: []db.Condition{db.OneOfIDs("id", ids)}, Fields: []string{"id"}},
	)
	if err != nil {
		return nil, err
	}
	seen := map[uuid.UUID]bool{}
	for _, n := range found {
		seen[res.id(n)] = true
	}
	for _, id := range ids {
		if !seen[id] {
			return nil, res.notFound(id.String())
		}
	}
	return found, nil
}

func (res resource[N, C]) serveShow(r *http.Request) (int, any, error) {
	n, _, err := res.find(r, pathValue(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{
		res.singular: attribute.Select(res.viewSingle(n, accessOf(r)), requestedFields(r)),
	}, nil
}

func (res resource[N, C]) viewSingle(n N, requester *access) object {
	o := res.view(n, requester)
	if res.addSingleOnly != nil {
		res.addSingleOnly(n, requester, o)
	}
	return o
}

func (res resource[N, C]) serveCreate(r *http.Request) (int, any, error) {
	drafts, bulk, err := res.decode(r, attribute.OnCreate)
	if err != nil {
		return 0, nil, err
	}
	if bulk {
		if err := res.checkBulkQuota(r, drafts); err != nil {
			return 0, nil, err
		}
	}
	for i := range drafts {
		if err := res.prepareCreate(r, &drafts[i], append([]string{"create_" + res.singular}, accessOf(r).pending[i]...)); err != nil {
			return 0, nil, err
		}
	}
	created, err := res.create(r.Context(), drafts)
	if err != nil {
		return 0, nil, err
	}
	requester, items := accessOf(r), make([]object, len(created))
	for i, n := range created {
		items[i] = res.viewSingle(n, requester)
	}
	if bulk {
		return http.StatusCreated, object{res.singular + "s": items}, nil
	}
	return http.StatusCreated, object{res.singular: items[0]}, nil
}

// checkBulkQuota refuses a bulk request with more objects for the caller's project than the project's quota
// allows at all. The store compares the quota with the objects that already exist; checkBulkQuota is earlier,
// before the handler reads anything for each object.
func (res resource[N, C]) checkBulkQuota(r *http.Request, drafts []C) error {
	project, own := caller(r).Project, int64(0)
	for _, c := range drafts {
		if p := res.project(c); p == nil || *p == project {
			own++
		}
	}
	limits, err := res.quota(r.Context(), project)
	if err != nil {
		return err
	}
	if limit, limited := limits[res.singular]; limited && limit >= 0 && own > limit {
		return network.OverQuota(res.singular)
	}
	return nil
}

func (res resource[N, C]) serveUpdate(r *http.Request) (int, any, error) {
	changes, _, err := res.decode(r, attribute.OnUpdate)
	if err != nil {
		return 0, nil, err
	}
	find := func(r *http.Request) (N, uuid.UUID, error) { return res.find(r, pathValue(r, "id")) }
	n, err := res.changeFound(r, find, func(_ N, c *C) error {
		*c = changes[0]
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, object{res.singular: res.viewSingle(n, accessOf(r))}, nil
}

// changeFound applies a change to the object that the function `find` returns, and returns the object after
// the change. The function `change` fills in the change. What the caller may change depends on the object: on
// a shared network, a project may keep the address pairs that the owner of the network has given to its port,
// but not add any. So the change is fenced by the revision of the object on which it was decided. If another
// request changes the object at the same time, changeFound reads the object again and decides again, unless
// the request r has the header If-Match.
func (res resource[N, C]) changeFound(
	r *http.Request,
	find func(*http.Request) (N, uuid.UUID, error),
	change func(N, *C) error,
) (N, error) {
	expect, err := expectedRevision(r)
	for err == nil {
		n, id, err := find(r)
		if err != nil {
			return n, err
		}
		var c C
		if err := change(n, &c); err != nil {
			return n, err
		}
		if err := res.authorizeUpdate(r, n, &c); err != nil {
			return n, err
		}
		fence := expect
		if fence == nil && res.revision != nil {
			fence = new(res.revision(n))
		}
		after, err := res.update(r.Context(), id, c, fence)
		var f *network.Fault
		if expect == nil && errors.As(err, &f) && f.Kind == network.RevisionMismatch {
			continue
		}
		return after, err
	}
	var none N
	return none, err
}

// authorizeUpdate checks whether the caller, who sees the object, may change it.
func (res resource[N, C]) authorizeUpdate(r *http.Request, n N, c *C) error {
	rules := []string{"update_" + res.singular}
	if pending := accessOf(r).pending; len(pending) > 0 {
		rules = append(rules, pending[0]...)
	}
	if err := res.require(r, n, rules...); err != nil || res.authorizeChange == nil {
		return err
	}
	return res.authorizeChange(r, n, c)
}

func (res resource[N, C]) serveDelete(r *http.Request) (int, any, error) {
	expect, err := expectedRevision(r)
	if err != nil {
		return 0, nil, err
	}
	n, id, err := res.find(r, pathValue(r, "id"))
	if err != nil {
		return 0, nil, err
	}
	if err := res.require(r, n, "delete_"+res.singular); err != nil {
		return 0, nil, err
	}
	if res.authorizeChange != nil {
		if err := res.authorizeChange(r, n, nil); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusNoContent, nil, res.remove(r.Context(), id, expect)
}

var revisionTag = regexp.MustCompile(`revision_number=([^",\s]*)`)

// expectedRevision returns the revision number that the If-Match header demands. If the header demands no
// revision number, expectedRevision returns nil.
func expectedRevision(r *http.Request) (*int64, error) {
	tags := revisionTag.FindAllStringSubmatch(strings.Join(r.Header.Values("If-Match"), ","), -1)
	switch len(tags) {
	case 0:
		return nil, nil
	case 1:
		revision, err := strconv.ParseInt(tags[0][1], 10, 64)
		if err != nil {
			return nil, network.Faultf(
				network.BadRequest,
				"Bad if-match request: Revision number etag must be in the format of revision_number=<int>.",
			)
		}
		return &revision, nil
	default:
		return nil, network.Faultf(network.BadRequest,
			"Bad if-match request: Multiple revision_number etags are not supported.")
	}
}

// fillProject sets the owner of a new object to the caller's project, unless the request has named the owner.
func fillProject(r *http.Request, project **string) error {
	if *project != nil {
		return nil
	}
	requester := caller(r)
	if requester.Project == "" {
		return badRequest(
			"Failed to parse request. Required attribute 'project_id' not specified, and the token is not scoped to a project.",
		)
	}
	*project = &requester.Project
	return nil
}

// newOwner returns the target for a new object, whose owner is the named project or the caller's project.
func newOwner(r *http.Request, project *string) policy.Target {
	if project == nil {
		return owned(caller(r).Project)
	}
	return owned(*project)
}

// createOwned checks whether the rules allow the caller to create an object that belongs to no other object.
func createOwned(r *http.Request, project **string, rules []string) error {
	if err := accessOf(r).require(rules, newOwner(r, *project), nil); err != nil {
		return err
	}
	return fillProject(r, project)
}

// findNetwork returns the network on which a new subnet or port is created. findNetwork returns an error if
// the caller cannot see the network.
func findNetwork(r *http.Request, s *portstore.Store, id uuid.UUID) (network.Network, error) {
	n, _, err := networks(s).find(r, id.String())
	return n, err
}

// networkParents returns a function that reads the networks to which objects belong, for the rules that
// compare attributes of the network.
func networkParents(
	s *portstore.Store,
) func(context.Context, []uuid.UUID) (map[uuid.UUID]func(policy.Target), error) {
	return func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]func(policy.Target), error) {
		found, err := s.Networks(ctx, db.Listing{Where: []db.Condition{db.OneOfIDs("id", ids)}})
		add := map[uuid.UUID]func(policy.Target){}
		for _, n := range found {
			add[n.ID] = func(t policy.Target) { addNetwork(t, n) }
		}
		return add, err
	}
}
