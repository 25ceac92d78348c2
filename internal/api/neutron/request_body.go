package neutron

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"berth/internal/api/osapi"
	"berth/internal/identity/policy"
	"berth/internal/network"
	"berth/internal/network/attribute"
)

// maxBulk is the maximum number of objects that one request creates.
const maxBulk = 1000

// decode reads the request's body: either one object under the singular name of the resource, or a list of
// objects under the plural name. The result `bulk` is true if the body has the plural name.
func (res resource[N, C]) decode(
	r *http.Request,
	verb attribute.Operations,
) (changes []C, bulk bool, err error) {
	envelope, err := readEnvelope(r)
	if err != nil {
		return nil, false, err
	}
	if raw, ok := envelope[res.singular]; ok && len(envelope) == 1 {
		c, err := res.decodeItem(raw, verb, accessOf(r))
		return []C{c}, false, err
	}
	raw, ok := envelope[res.singular+"s"]
	if !ok || len(envelope) != 1 || verb != attribute.OnCreate {
		return nil, false, badRequest("Unable to find '%s' in request body", res.singular)
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, true, badRequest("Body contains invalid data: '%ss' is not a list", res.singular)
	}
	if len(items) == 0 {
		return nil, true, badRequest("Resources required")
	}
	if err := attribute.CheckLength(len(items), maxBulk); err != nil {
		return nil, true, invalid(res.singular+"s", err)
	}
	for _, item := range items {
		c, err := res.decodeItem(res.unwrap(item), verb, accessOf(r))
		if err != nil {
			return nil, true, err
		}
		changes = append(changes, c)
	}
	return changes, true, nil
}

// unwrap returns the object in an item of a bulk request. An item is either the object itself, or has the
// form of a single object's body.
func (res resource[N, C]) unwrap(item json.RawMessage) json.RawMessage {
	var body map[string]json.RawMessage
	if json.Unmarshal(item, &body) == nil && body[res.singular] != nil {
		return body[res.singular]
	}
	return item
}

func readEnvelope(r *http.Request) (map[string]json.RawMessage, error) {
	if ct := r.Header.Get("Content-Type"); ct != "" && !osapi.IsJSON(ct) {
		return nil, badRequest("Unsupported Content-Type: the body has to be application/json")
	}
	var envelope map[string]json.RawMessage
	if err := osapi.Decode(r, &envelope); err != nil {
		return nil, err
	}
	return envelope, nil
}

// decodeItem reads one object. decodeItem reads the attributes in the order of the resource's attribute
// table, so that the same request always gets the same error.
func (res resource[N, C]) decodeItem(
	raw json.RawMessage,
	verb attribute.Operations,
	requester *access,
) (c C, err error) {
	var given map[string]json.RawMessage
	if attribute.IsNull(raw) || json.Unmarshal(raw, &given) != nil {
		return c, badRequest("Invalid input for %s. Reason: '%s' is not a dictionary.",
			res.singular, attribute.Excerpt(raw))
	}
	var pending []string
	defer func() { requester.pending = append(requester.pending, pending) }()
	if err := checkProject(given, requester); err != nil {
		return c, err
	}
	if err := res.checkKnown(given); err != nil {
		return c, err
	}
	for _, a := range res.attributes {
		v, ok := given[a.Name]
		switch {
		case !ok && verb == attribute.OnCreate && a.SettableOn&attribute.Required != 0:
			return c, badRequest("Failed to parse request. Required attribute '%s' not specified", a.Name)
		case !ok:
			continue
		case a.SettableOn&verb == 0 && verb == attribute.OnCreate:
			return c, badRequest("Attribute '%s' not allowed in POST", a.Name)
		case a.SettableOn&verb == 0:
			return c, badRequest("Cannot update read-only attribute %s", a.Name)
		case a.AdminOnlyWrite && !(a.FalseAllowed && verb == attribute.OnCreate && isFalse(v)):
			rule := verb.String() + "_" + res.singular + ":" + a.Name
			switch requester.forSome(rule) {
			case policy.Denied:
				return c, forbidden(rule)
			case policy.Depends:
				pending = append(pending, rule)
			}
		}
		if err := a.Set(&c, v); err != nil {
			return c, invalid(a.Name, err)
		}
	}
	return c, nil
}

// checkProject refuses a request in which a caller who is neither an administrator nor a service names
// another project than the caller's own.
func checkProject(given map[string]json.RawMessage, requester *access) error {
	for _, name := range []string{"project_id", "tenant_id"} {
		project, err := attribute.Text(255)(given[name])
		if err == nil && project != requester.caller.Project && !requester.mayChooseProject() {
			return badRequest(
				"Specifying 'project_id' other than the authenticated project in request is not allowed for the current user.",
			)
		}
	}
	return nil
}

func isFalse(raw json.RawMessage) bool {
	v, err := attribute.Bool(raw)
	return err == nil && !v
}

func (res resource[N, C]) checkKnown(given map[string]json.RawMessage) error {
	var unknown []string
	for name := range given {
		hasName := func(a attribute.Definition[N, C]) bool { return a.Name == name }
		if !slices.ContainsFunc(res.attributes, hasName) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return badRequest("Unrecognized attribute(s) '%s'", strings.Join(unknown, ", "))
}

func invalid(name string, err error) error {
	var fault *network.Fault
	var complete attribute.CompleteError
	if errors.As(err, &fault) || errors.As(err, &complete) {
		return err
	}
	return badRequest("Invalid input for %s. Reason: %s.", name, err)
}
