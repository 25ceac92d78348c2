package placement_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

func TestInventoryNumbersAreBounded(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	all := "/resource_providers/" + p + "/inventories"
	for fields, want := range map[string]string{
		`"total":0`:                                     "0 is less than the minimum of 1 Failed validating 'minimum' in schema['properties']['total']",
		`"total":2147483648`:                            "2147483648 is greater than the maximum of 2147483647 Failed validating 'maximum' in schema['properties']['total']",
		`"total":true`:                                  "True is not of type 'integer' Failed validating 'type' in schema['properties']['total']",
		`"total":"8"`:                                   "'8' is not of type 'integer'",
		`"total":8.5`:                                   "8.5 is not of type 'integer'",
		`"total":null`:                                  "None is not of type 'integer'",
		`"total":1e400`:                                 "is not of type 'integer'",
		`"total":99999999999999999999999999`:            "is greater than the maximum of 2147483647",
		`"total":8,"reserved":-1`:                       "-1 is less than the minimum of 0",
		`"total":8,"min_unit":0`:                        "0 is less than the minimum of 1",
		`"total":8,"step_size":0`:                       "0 is less than the minimum of 1",
		`"total":8,"max_unit":2147483648`:               "is greater than the maximum",
		`"total":8,"allocation_ratio":3.5e38`:           "3.5e38 is greater than the maximum of 3.40282e+38",
		`"total":8,"allocation_ratio":1e400`:            "is greater than the maximum",
		`"total":8,"allocation_ratio":-1`:               "Unable to create inventory for resource provider " + p + ": Invalid inventory for 'VCPU' on resource provider '" + p + "'. The reserved value is greater than total.",
		`"total":8,"x":1,"y":2`:                         "Additional properties are not allowed ('x', 'y' were unexpected)",
		`"total":8,"x":1,"reserved":"no"`:               "Additional properties are not allowed ('x' was unexpected) Failed validating 'additionalProperties' in schema",
		`"reserved":1`:                                  "'total' is a required property Failed validating 'required' in schema",
		`"total":8,"resource_provider_generation":true`: "True is not of type 'integer'",
	} {
		c.want(400, want, "1.39", "POST", all, `{"resource_class":"VCPU",`+fields+`}`)
	}
	c.want(400, "'vcpu' does not match '^[A-Z0-9_]+$'", "1.39", "POST", all, `{"resource_class":"vcpu","total":1}`)
	c.want(400, "'resource_class' was unexpected", "1.39", "PUT", all+"/VCPU", `{"resource_class":"VCPU","total":1,"resource_provider_generation":0}`)
	c.same(c.want(200, "", "1.39", "GET", all, ""), `{"resource_provider_generation":0,"inventories":{}}`)

	c.want(201, `"total":10,`, "1.39", "POST", all, `{"resource_class":"VCPU","total":10.0,"min_unit":9,"max_unit":1,"resource_provider_generation":99}`)
}

// odd are the spellings of a UUID that Python's parser takes.
func odd(id string) []string {
	return []string{strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "{" + id + "}", "urn:uuid:" + id, "urn:uuid:{" + strings.ToUpper(id) + "}",
		id[:4] + "-" + strings.ReplaceAll(id[4:], "-", ""), "--" + id}
}

func TestOddSpellingsOfUUIDsAreOneUUID(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":100}}`)
	body := func(provider string, generation any) string {
		return fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":%v,"consumer_type":"T"}`, provider, generation)
	}
	for i := range odd(p) {
		id := uuid.NewString()
		spelling := odd(id)[i]
		a := c.want(200, id, "1.39", "POST", "/resource_providers", fmt.Sprintf(`{"name":%q,"uuid":%q}`, id, spelling))
		if at := a.header.Get("Location"); !strings.HasSuffix(at, "/"+id) {
			t.Errorf("%s is at %s", spelling, at)
		}
		c.want(200, id, "1.39", "GET", "/resource_providers/"+id, "")
		c.want(404, "", "1.39", "GET", "/resource_providers/"+url.PathEscape(spelling), "")
		c.want(409, "uuid: "+id+" already exists.", "1.39", "POST", "/resource_providers", fmt.Sprintf(`{"name":%q,"uuid":%q}`, spelling, spelling))
		c.want(204, "", "1.39", "PUT", "/allocations/"+url.PathEscape(spelling), body(p, "null"))
		c.want(409, "expected 1 but got None", "1.39", "PUT", "/allocations/"+id, body(p, "null"))
		c.want(200, `"consumer_generation":1`, "1.39", "GET", "/allocations/"+id, "")
		c.same(c.want(200, "", "1.39", "GET", "/allocations/"+url.PathEscape(spelling), ""), `{"allocations":{}}`)
		c.want(404, "No allocations for consumer", "1.39", "DELETE", "/allocations/"+url.PathEscape(spelling), "")
		c.want(200, "", "1.1", "PUT", "/resource_providers/"+p+"/aggregates", fmt.Sprintf(`[%q]`, spelling))
	}
	c.want(400, "Allocation for resource provider '"+strings.ToUpper(p)+"' that does not exist.", "1.39", "PUT", "/allocations/"+uuid.NewString(), body(strings.ToUpper(p), "null"))
	for _, bad := range []string{"x", p + "0", p[:35], "0x" + strings.ReplaceAll(p, "-", "")[2:], " " + p, p + " ", strings.Repeat("-", 36), "g" + p[1:], p[:10] + "_" + p[11:]} {
		c.want(400, "is not a 'uuid'", "1.39", "POST", "/resource_providers", fmt.Sprintf(`{"name":"bad","uuid":%q}`, bad))
		c.want(400, "Malformed consumer_uuid: "+bad, "1.39", "PUT", "/allocations/"+url.PathEscape(bad), "{")
		c.want(400, "is not a 'uuid'", "1.1", "PUT", "/resource_providers/"+p+"/aggregates", fmt.Sprintf(`[%q]`, bad))
	}
}

func TestQueriesOfUsagesAndTraits(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := stage(c)
	const invalid = "Invalid query string parameters: "
	long := strings.Repeat("x", 256)
	for _, tc := range []struct {
		status        int
		part, version string
		query         string
	}{
		{400, invalid + "'project_id' is a required property", "1.9", "/usages"},
		{400, invalid + "'' should be non-empty", "1.9", "/usages?project_id="},
		{400, "is too long Failed validating 'maxLength'", "1.9", "/usages?project_id=" + long},
		{400, "is too long", "1.9", "/usages?project_id=p&user_id=" + long},
		{400, "Additional properties are not allowed ('x' was unexpected)", "1.9", "/usages?project_id=p&x=1"},
		{400, "('consumer_type' was unexpected)", "1.37", "/usages?project_id=p&consumer_type=T"},
		{400, "'t' does not match", "1.38", "/usages?project_id=p&consumer_type=t"},
		{200, `{"usages":{}}`, "1.38", "/usages?project_id=p&consumer_type=allx"},
		{200, `{"usages":{"T":{"VCPU":1,"consumer_count":1}}}`, "1.38", "/usages?project_id=p"},
		{200, `{"usages":{"all":{"VCPU":1,"consumer_count":1}}}`, "1.38", "/usages?project_id=p&consumer_type=all"},
		{200, `{"usages":{}}`, "1.38", "/usages?project_id=p&consumer_type=unknown"},
		{200, `{"usages":{}}`, "1.38", "/usages?project_id=p&consumer_type=ALL"},
		{200, `{"usages":{"VCPU":1}}`, "1.9", "/usages?project_id=x&project_id=p"},
		{200, `{"usages":{}}`, "1.9", "/usages?project_id=p&project_id=x"},
		{200, `{"usages":{}}`, "1.9", "/usages?project_id=p'%20or%20'1'='1"},
		{400, "", "1.9", "/usages?project_id=%ff"},
		{200, "COMPUTE_NODE", "1.6", "/traits?name=no:COMPUTE_NODE"},
		{200, `{"traits":[]}`, "1.6", "/traits?name=startswith:COMPUTE%25"},
		{200, `{"traits":[]}`, "1.6", "/traits?name=in:"},
		{400, "should be non-empty", "1.6", "/traits?name="},
		{200, `{"traits":[]}`, "1.6", "/traits?name=in:CUSTOM_B&name=startswith:CUSTOM_"},
		{200, "", "1.39", "/resource_classes?x=%E2%98%83"},
		{200, `"resource_providers":[]`, "1.0", "/resource_providers?name="},
		{200, `"name":"p"`, "1.0", "/resource_providers?name=x&name=p"},
		{400, "does not match", "1.0", "/resource_providers?uuid=" + strings.ReplaceAll(uuid.NewString(), "-", "")},
	} {
		c.want(tc.status, tc.part, tc.version, "GET", fill(tc.query), "")
	}
}

// TestWhatIsNotJSONIsRefused tries every way not to be a sensible document on every operation with a body, and finds nothing
// written.
func TestWhatIsNotJSONIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := stage(c)
	look := func() (all []string) {
		for _, path := range []string{"/resource_providers", "/resource_classes", "/traits", "/allocations/C", "/resource_providers/P/inventories", "/resource_providers/P/aggregates", "/resource_providers/P/traits"} {
			all = append(all, c.want(200, "", "1.39", "GET", fill(path), "").raw)
		}
		return all
	}
	before := look()
	valid := []string{"a number of 500 kB", "a null", "a list", "a text", "a key of 500 kB", "something unheard of"}
	for _, o := range operations {
		if !strings.Contains(o.flags, "J") {
			continue
		}
		path, good := fill(o.path), fill(o.body)
		if o.path == "/resource_providers/P/inventories/VCPU" {
			good = fill(`{"resource_provider_generation":G,"total":7}`)
		}
		for what, body := range map[string]string{
			"half":                 good[:len(good)-1],
			"two":                  good + good,
			"a comma too many":     strings.TrimSuffix(good, "}") + ",}",
			"NaN":                  strings.TrimSuffix(good, "}") + `,"x":NaN}`,
			"Infinity":             strings.TrimSuffix(good, "}") + `,"x":-Infinity}`,
			"hex":                  strings.TrimSuffix(good, "}") + `,"x":0x1}`,
			"leading zero":         strings.TrimSuffix(good, "}") + `,"x":01}`,
			"single quotes":        strings.ReplaceAll(good, `"`, "'"),
			"a duplicate key":      strings.TrimSuffix(good, "}") + `,` + strings.TrimPrefix(good, "{"),
			"an escaped NUL":       strings.TrimSuffix(good, "}") + `,"x":"\u0000"}`,
			"a NUL":                strings.TrimSuffix(good, "}") + ",\"x\":\"\x00\"}",
			"half a character":     strings.TrimSuffix(good, "}") + `,"x":"\ud83d"}`,
			"no UTF-8":             strings.TrimSuffix(good, "}") + ",\"x\":\"\xc3\x28\"}",
			"UTF-16":               "\xff\xfe{\x00}\x00",
			"a byte order mark":    "\xef\xbb\xbf" + good,
			"depth":                strings.Repeat(`{"x":`, 100_000) + "1" + strings.Repeat("}", 100_000),
			"width and depth":      strings.Repeat("[", 500_000),
			"a number of 500 kB":   strings.TrimSuffix(good, "}") + `,"x":` + strings.Repeat("9", 500_000) + "}",
			"a null":               "null",
			"a list":               "[]",
			"a text":               `"` + o.path + `"`,
			"blanks":               "  \n",
			"a form":               "name=x&uuid=y",
			"a key of 500 kB":      strings.TrimSuffix(good, "}") + `,"` + strings.Repeat("k", 500_000) + `":1}`,
			"something unheard of": strings.TrimSuffix(good, "}") + `,"unheard":1}`,
		} {
			word := "Malformed JSON: "
			if slices.Contains(valid, what) {
				word = "JSON does not validate: "
			}
			a := c.send("1.39", o.method, path, body, "Content-Type", "application/json")
			errors, _ := a.body["errors"].([]any)
			if a.status != 400 || !strings.Contains(a.raw, word) || len(errors) != 1 || len(a.raw) > 8192 || a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s with %s: %d %.300s", o.method, o.path, what, a.status, a.raw)
			}
		}
		if a := c.send("1.39", o.method, path, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s %s with more than a megabyte: %d", o.method, o.path, a.status)
		}
	}
	if d := cmp.Diff(before, look()); d != "" {
		t.Errorf("what was refused left traces: %s", d)
	}
}

func TestLongAndOddAddressesAreAnswered(t *testing.T) {
	t.Parallel()
	c := serve(t)
	long := strings.Repeat("x", 8000)
	for path, status := range map[string]int{
		"/resource_providers/" + long: 404, "/" + long: 404, "/resource_providers?name=" + long: 200, "/resource_providers?" + long + "=1": 400, "/traits/" + long: 404,
		"/usages?project_id=" + long: 400, "/traits?name=startswith:" + long: 200, "/allocations/" + long: 200, "/resource_classes/" + long: 404,
		"/resource_providers/%2e%2e": 404, "/resource_providers/..%2f": 404, "/resource_providers//": 404, "//resource_providers": 404, "/resource_providers%2f": 404, "/traits?%": 400,
		"/traits?a;b": 400, "/resource_providers/'; drop table provider; --/usages": 404, "/allocations/%E2%98%83": 200, "/allocations/%F0%9F%92%A9%00": 404,
	} {
		a := c.want(status, "", "1.39", "GET", strings.ReplaceAll(path, " ", "%20"), "")
		if len(a.raw) > 8192 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%.60s: %.200s", path, a.raw)
		}
	}
}
