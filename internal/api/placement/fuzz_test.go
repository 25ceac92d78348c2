package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"berth/internal/api/osapi"
)

// FuzzBody checks that every JSON body is either accepted or refused with a reason.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"allocations":{"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0001":{"resources":{"VCPU":1},"generation":1}},"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"T","mappings":{"":["x"]}}`,
		`{"allocations":[{"resource_provider":{"uuid":"7d3c1c1e7d1b4d6ab6f42f2f0c5e0001"},"resources":{"VCPU":1e3}}],"project_id":"p","user_id":"u"}`,
		`{"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0001":{"allocations":{}}}`, `{"total":1,"reserved":0.0,"allocation_ratio":1e400}`, `{"total":true}`,
		`{"name":"n","uuid":"{7D3C1C1E-7d1b-4d6a-b6f4-2f2f0c5e0001}","parent_provider_uuid":null}`, `["a","a"]`, `null`, `{"a":[{"b":[]}]}`, `9223372036854775808`,
	} {
		f.Add([]byte(seed), uint8(39))
	}
	f.Fuzz(func(t *testing.T, raw []byte, version uint8) {
		if osapi.CheckJSON(raw) != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		minor := int(version) % (newest + 1)
		takes := func(form *schema) bool {
			m := form.check(v)
			if m != nil && (m.why == "" || m.keyword == "") {
				t.Errorf("body %s is refused without a reason: %+v; want a reason and a keyword", raw, m)
			}
			return m == nil
		}
		if form := allocationSchema(minor, false); takes(form) {
			w := readConsumerWrite(minor, "c", v.(map[string]any))
			for _, resources := range w.Allocations {
				for class, amount := range resources {
					if amount < 1 || !classPattern.MatchString(class) {
						t.Errorf(
							"body %s at microversion 1.%d: got the amount %d of class %q, want at least 1 of a valid class",
							raw, minor, amount, class,
						)
					}
				}
			}
			if n := utf8.RuneCountInString(w.Project); n < 1 || n > 255 {
				t.Errorf("body %s at microversion 1.%d: got a project of %d characters, want 1 to 255",
					raw, minor, n)
			}
		}
		if form := (&schema{
			kind:    "object",
			minKeys: 1,
			keys:    keyPattern,
			each:    allocationSchema(minor, true),
		}); minor >= 13 &&
			takes(form) {
			for consumer, in := range v.(map[string]any) {
				readConsumerWrite(minor, consumer, in.(map[string]any))
			}
		}
		if takes(inventorySchema(nil, nil)) {
			i := readInventory(v.(map[string]any))
			if min(i.Total, i.MinUnit, i.MaxUnit, i.StepSize) < 1 || i.Reserved < 0 ||
				max(i.Total, i.Reserved, i.MinUnit, i.MaxUnit, i.StepSize) > math.MaxInt32 ||
				math.IsInf(i.Capacity(), 0) {
				t.Errorf("body %s: want a valid inventory or an error, got the invalid inventory %+v", raw, i)
			}
		}
		if takes(providerSchema(minor, map[string]*schema{"uuid": someUUID})) {
			if id := v.(map[string]any)["uuid"]; id != nil && len(stringOf(id)) > someUUID.maxLength {
				t.Errorf("accepted a UUID of %d bytes, want a refusal", len(stringOf(id)))
			}
		}
		takes(classForm)
		takes(&schema{kind: "array", items: someUUID, unique: true})
	})
}

// FuzzUUID checks that canonicalUUID accepts the same texts as Python's UUID parser, and returns one
// canonical form for each UUID.
func FuzzUUID(f *testing.F) {
	const id = "7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0001"
	for _, seed := range []string{id, strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), "-" + id + "-", "{{" + id, "uuid:urn:" + id,
		id + "\n", " " + id, id[:35], id + "0", "0x" + id, strings.Repeat("-", 36), "７d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0001", "7d3c_1c1e-7d1b-4d6a-b6f4-2f2f0c5e001", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hex := strings.NewReplacer("-", "").
			Replace(strings.Trim(strings.ReplaceAll(strings.ReplaceAll(s, "urn:", ""), "uuid:", ""), "{}"))
		python := len(hex) == 32 && strings.Trim(strings.ToLower(hex), "0123456789abcdef") == ""

		got, ok := canonicalUUID(s)

		if ok != python || ok != isUUID(s) {
			t.Fatalf("UUID %q: got valid=%v from canonicalUUID, want %v as from Python's parser",
				s, ok, python)
		}
		if !ok {
			return
		}
		if id, err := uuid.Parse(got); err != nil || id.String() != got ||
			strings.ReplaceAll(got, "-", "") != strings.ToLower(hex) {
			t.Errorf(
				"UUID %q: got the canonical form %q, want lower-case digits in Python's order with four hyphens",
				s,
				got,
			)
		}
		if again, _ := canonicalUUID(got); again != got {
			t.Errorf(
				"UUID %q: want that a conversion of the canonical form %q returns the same form, got %q",
				s, got, again,
			)
		}
	})
}

// FuzzVersion checks that a version header is either accepted with a known version or refused with 400 or
// 406.
func FuzzVersion(f *testing.F) {
	for _, seed := range []string{"", "placement 1.39", "placement latest", "compute 2.1, Placement\t1.7", "placement 1.40", "placement 1.2.3", "placement", "placement 1.-1", ",,", "placement 01.1", "placement 1.99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		r := &http.Request{Header: http.Header{"Openstack-Api-Version": {header}}}
		minor, err := negotiate(r)
		var e *osapi.Error
		switch {
		case err == nil && (minor < 0 || minor > newest):
			t.Errorf(
				"version header %q: want a known microversion or an error, got the unknown microversion 1.%d",
				header,
				minor,
			)
		case err != nil && (!errors.As(err, &e) || e.Status != 400 && e.Status != 406):
			t.Errorf("version header %q: got error %v, want 400 or 406", header, err)
		case err == nil && !strings.Contains(strings.ToLower(header), "placement") && minor != 0:
			t.Errorf("version header %q without a version of placement: got 1.%d, want 1.0", header, minor)
		}
	})
}

// FuzzAccept checks that a request with "*/*" in its Accept header accepts JSON, regardless of the other
// media types in the header.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"", "*/*", "application/json", "application/json;q=0", "text/html, application/*;q=0.5", "x", ",", ";", "a/b;c", "text/html;q=x", `a/b;c="d,e"`} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, accept, kind string) {
		header := http.Header{"Accept": {accept}, "Content-Type": {kind}}
		r := &http.Request{Header: header}
		accepts(r, "application", "json")
		accepts(r, "text", "html")
		if media := mediaType(r); media != strings.ToLower(media) && kind != "" {
			t.Errorf("Content-Type %q: got the media type %q, want lower case", kind, media)
		}
		header["Accept"] = []string{accept, "*/*"}
		if !accepts(r, "application", "json") {
			t.Errorf("Accept header with %q and */*: JSON is refused, want it accepted", accept)
		}
	})
}

// FuzzQuery checks that a query is either refused with 400 or read as the schema requires.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"project_id=p&user_id=u&consumer_type=T", "project_id=&project_id=x", "consumer_type=allx&project_id=%00", "name=in:A,B&associated=TRUE", "name=startswith:%25", "name=x", "%zz", "a;b", "name=%ff"} {
		f.Add(seed, uint8(39))
	}
	f.Fuzz(func(t *testing.T, raw string, version uint8) {
		c := &call{Request: &http.Request{URL: &url.URL{RawQuery: raw}}, v: int(version) % (newest + 1)}
		refused := func(err error) {
			var e *osapi.Error
			if !errors.As(err, &e) || e.Status != 400 {
				t.Errorf("query %q: got error %v, want 400", raw, err)
			}
		}
		if usages, err := c.decodeQuery(usageSchema(c.v)); err != nil {
			refused(err)
		} else if _, sent := usages["consumer_type"]; usages["project_id"] == "" || sent && c.v < 38 {
			t.Errorf("query %q at microversion 1.%d: want a valid usage query or an error, got the invalid usage query %v", raw, c.v, usages)
		}
		query, err := c.decodeQuery(traitForm)
		if err != nil {
			refused(err)
			return
		}
		filter, err := traitFilter(query)
		if err != nil {
			refused(err)
			return
		}
		associated := strings.ToLower(query["associated"])
		if slices.Contains([]string{"true", "false"}, associated) != (filter.Associated != nil) {
			t.Errorf(
				"query %q: got the filter %+v, want Associated set if and only if the query's associated is true or false",
				raw,
				filter,
			)
		}
	})
}
