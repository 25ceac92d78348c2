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

// spellings returns a UUID in several formats, each of which Python's parser accepts.
func spellings(id string) []string {
	return []string{
		strings.ToUpper(id),
		strings.ReplaceAll(id, "-", ""),
		"{" + id + "}",
		"urn:uuid:" + id,
		"urn:uuid:{" + strings.ToUpper(id) + "}",
		id[:4] + "-" + strings.ReplaceAll(id[4:], "-", ""),
		"--" + id,
	}
}

func TestUUID_AllSpellingsAreOneUUID(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":100}}`)
	body := func(provider string, generation any) string {
		return fmt.Sprintf(
			`{"allocations":{%q:{"resources":{"VCPU":1}}},"project_id":"p","user_id":"u","consumer_generation":%v,"consumer_type":"T"}`,
			provider,
			generation,
		)
	}
	for i := range spellings(p) {
		id := uuid.NewString()
		spelling := spellings(id)[i]
		a := c.want(200, id, "1.39", "POST", "/resource_providers",
			fmt.Sprintf(`{"name":%q,"uuid":%q}`, id, spelling))
		if at := a.header.Get("Location"); !strings.HasSuffix(at, "/"+id) {
			t.Errorf("UUID written as %s: got Location %s, want the canonical form", spelling, at)
		}
		c.want(200, id, "1.39", "GET", "/resource_providers/"+id, "")
		c.want(404, "", "1.39", "GET", "/resource_providers/"+url.PathEscape(spelling), "")
		c.want(409, "uuid: "+id+" already exists.", "1.39", "POST", "/resource_providers",
			fmt.Sprintf(`{"name":%q,"uuid":%q}`, spelling, spelling))
		c.want(204, "", "1.39", "PUT", "/allocations/"+url.PathEscape(spelling), body(p, "null"))
		c.want(409, "expected 1 but got None", "1.39", "PUT", "/allocations/"+id, body(p, "null"))
		c.want(200, `"consumer_generation":1`, "1.39", "GET", "/allocations/"+id, "")
		c.same(
			c.want(200, "", "1.39", "GET", "/allocations/"+url.PathEscape(spelling), ""),
			`{"allocations":{}}`,
		)
		c.want(404, "No allocations for consumer", "1.39", "DELETE",
			"/allocations/"+url.PathEscape(spelling), "")
		c.want(200, "", "1.1", "PUT", "/resource_providers/"+p+"/aggregates", fmt.Sprintf(`[%q]`, spelling))
	}
	c.want(400, "Allocation for resource provider '"+strings.ToUpper(p)+"' that does not exist.",
		"1.39", "PUT", "/allocations/"+uuid.NewString(), body(strings.ToUpper(p), "null"))
	for _, bad := range []string{"x", p + "0", p[:35], "0x" + strings.ReplaceAll(p, "-", "")[2:], " " + p, p + " ", strings.Repeat("-", 36), "g" + p[1:], p[:10] + "_" + p[11:]} {
		t.Run(bad, func(t *testing.T) {
			c := c.in(t)
			c.want(400, "is not a 'uuid'", "1.39", "POST", "/resource_providers",
				fmt.Sprintf(`{"name":"bad","uuid":%q}`, bad))
			c.want(400, "Malformed consumer_uuid: "+bad, "1.39", "PUT",
				"/allocations/"+url.PathEscape(bad), "{")
			c.want(400, "is not a 'uuid'", "1.1", "PUT",
				"/resource_providers/"+p+"/aggregates", fmt.Sprintf(`[%q]`, bad))
		})
	}
}

// TestBody_MalformedJSONIsRefused sends malformed bodies to every operation and checks that nothing is
// written.
func TestBody_MalformedJSONIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t)
	fill := prepare(c)
	look := func() (all []string) {
		for _, path := range []string{"/resource_providers", "/resource_classes", "/traits", "/allocations/C", "/resource_providers/P/inventories", "/resource_providers/P/aggregates", "/resource_providers/P/traits"} {
			all = append(all, c.want(200, "", "1.39", "GET", fill(path), "").raw)
		}
		return all
	}
	before := look()
	valid := []string{
		"a number of 500 kB",
		"a null",
		"a list",
		"a text",
		"a key of 500 kB",
		"something unheard of",
	}
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
			if a.status != 400 || !strings.Contains(a.raw, word) || len(errors) != 1 || len(a.raw) > 8192 ||
				a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s with %s: got %d %.300s, want 400 with one error",
					o.method, o.path, what, a.status, a.raw)
			}
		}
		if a := c.send("1.39", o.method, path, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s %s with a body above one megabyte: got %d, want 413", o.method, o.path, a.status)
		}
	}
	if d := cmp.Diff(before, look()); d != "" {
		t.Errorf(
			"state of the API: want the same before and after the refused requests (-before +after):\n%s",
			d,
		)
	}
}
