package placement_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

const incompleteOwnerID = "00000000-0000-0000-0000-000000000000"

// vcpus returns the part of a body that allocates VCPUs of a provider, in the format since microversion 1.12.
func vcpus(provider string, n int) string {
	return fmt.Sprintf(`"allocations":{%q:{"resources":{"VCPU":%d}}}`, provider, n)
}

func TestAllocations_FormatOfEveryVersion(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":10}}`)
	path := "/allocations/" + uuid.NewString()
	list := fmt.Sprintf(`"allocations":[{"resource_provider":{"uuid":%q},"resources":{"VCPU":2}}]`, p)
	who := `,"project_id":"p","user_id":"u"`

	c.same(c.want(200, "", "1.39", "GET", path, ""), `{"allocations":{}}`)
	for _, step := range []struct{ version, body string }{
		{"1.0", list},
		{"1.8", list + who},
		{"1.12", vcpus(p, 2) + who},
		{"1.28", vcpus(p, 2) + who + `,"consumer_generation":3`},
		{"1.34", vcpus(p, 2) + who + `,"consumer_generation":4,"mappings":{"":["not looked at"],"1":["` + p + `"]}`},
		{"1.38", vcpus(p, 2) + who + `,"consumer_generation":5,"consumer_type":"INSTANCE"`},
		{"1.28", vcpus(p, 2) + who + `,"consumer_generation":6`},
	} {
		t.Run(step.version, func(t *testing.T) {
			c := c.in(t)
			c.want(204, "", step.version, "PUT", path, "{"+step.body+"}")
			user := "u"
			if step.version == "1.0" {
				user = incompleteOwnerID
			}
			c.want(200, user, "1.12", "GET", path, "")
		})
	}

	held := fmt.Sprintf(`"allocations":{%q:{"resources":{"VCPU":2},"generation":8}}`, p)
	c.same(c.want(200, "", "1.0", "GET", path, ""), "{"+held+"}")
	c.same(c.want(200, "", "1.12", "GET", path, ""), "{"+held+who+"}")
	c.same(c.want(200, "", "1.28", "GET", path, ""), "{"+held+who+`,"consumer_generation":7}`)
	shown := c.want(200, "", "1.38", "GET", path, "")
	c.same(shown, "{"+held+who+`,"consumer_generation":7,"consumer_type":"INSTANCE"}`)
	c.want(204, "", "1.38", "PUT", path, shown.raw) // a client may send back the body of a GET
	consumer := strings.TrimPrefix(path, "/allocations/")
	ofProvider := "/resource_providers/" + p + "/allocations"
	const withGeneration = `{"allocations":{%q:{"resources":{"VCPU":2},"consumer_generation":8}},` +
		`"resource_provider_generation":9}`
	c.same(c.want(200, "", "1.28", "GET", ofProvider, ""), fmt.Sprintf(withGeneration, consumer))
	const withoutGeneration = `{"allocations":{%q:{"resources":{"VCPU":2}}},"resource_provider_generation":9}`
	c.same(c.want(200, "", "1.27", "GET", ofProvider, ""), fmt.Sprintf(withoutGeneration, consumer))

	for _, wrong := range []struct{ version, body, text string }{
		{"1.7", list + who, "Additional properties are not allowed ('project_id', 'user_id' were unexpected)"},
		{"1.8", list, "'project_id' is a required property"},
		{"1.11", vcpus(p, 2) + who, "is not of type 'array'"},
		{"1.12", list + who, "is not of type 'object'"},
		{"1.12", `"allocations":{}` + who, "does not have enough properties"},
		{"1.27", vcpus(p, 2) + who + `,"consumer_generation":8`, "'consumer_generation' was unexpected"},
		{"1.28", vcpus(p, 2) + who, "'consumer_generation' is a required property"},
		{"1.33", vcpus(p, 2) + who + `,"consumer_generation":8,"mappings":{"":[]}`, "'mappings' was unexpected"},
		{"1.34", vcpus(p, 2) + who + `,"consumer_generation":8,"mappings":{}`, "does not have enough properties"},
		{"1.34", vcpus(p, 2) + who + `,"consumer_generation":8,"mappings":{"a":["x"]}`, "'x' is not a 'uuid'"},
		{"1.37", vcpus(p, 2) + who + `,"consumer_generation":8,"consumer_type":"T"`, "'consumer_type' was unexpected"},
		{"1.38", vcpus(p, 2) + who + `,"consumer_generation":8`, "'consumer_type' is a required property"},
		{"1.38", vcpus(p, 2) + who + `,"consumer_generation":8,"consumer_type":"t"`, "'t' does not match '^[A-Z0-9_]+$'"},
	} {
		t.Run(wrong.version, func(t *testing.T) {
			c := c.in(t)
			c.want(400, wrong.text, wrong.version, "PUT", path, "{"+wrong.body+"}")
		})
	}
	c.want(204, "", "1.0", "DELETE", path, "")
	c.want(404, "No allocations for consumer '"+consumer+"'", "1.0", "DELETE", path, "")
	if g := c.generation(p); g != 9.0 {
		t.Errorf("delete the allocations: the provider's generation is %v, want 9 as before", g)
	}
}

func TestAllocations_ConsumerGenerationMustMatch(t *testing.T) {
	t.Parallel()
	c := serve(t)
	a, b := c.provider("a"), c.provider("b")
	c.stock(a, `{"VCPU":{"total":10}}`)
	c.stock(b, `{"VCPU":{"total":10}}`)
	path := "/allocations/" + uuid.NewString()
	put := func(status int, text, generation, allocations string) {
		t.Helper()
		got := c.want(status, text, "1.28", "PUT", path,
			"{"+allocations+`,"project_id":"p","user_id":"u","consumer_generation":`+generation+"}")
		_ = got
	}

	put(409, "consumer generation conflict - expected null but got 1", "1", vcpus(a, 1))
	put(204, "", "null", `"allocations":{}`)
	put(204, "", "null", vcpus(a, 1))
	put(409, "consumer generation conflict - expected 1 but got None", "null", vcpus(a, 1))
	put(409, "consumer generation conflict - expected 1 but got 2", "2", vcpus(a, 1))
	put(409, "consumer generation conflict - expected 1 but got 0", "0", `"allocations":{}`)
	put(204, "", "1", vcpus(b, 1))
	if ga, gb := c.generation(a), c.generation(b); ga != 2.0 || gb != 2.0 {
		t.Errorf("move allocations from provider a to b: their generations are %v and %v, want 2 and 2",
			ga, gb)
	}
	conflict := c.send("1.39", "PUT", path,
		"{"+vcpus(b, 1)+`,"project_id":"p","user_id":"u","consumer_generation":1,"consumer_type":"T"}`)
	if conflict.status != 409 || conflict.code() != "placement.concurrent_update" {
		t.Errorf(
			"write with an old consumer generation: got %d %v, want 409 placement.concurrent_update",
			conflict.status,
			conflict.code(),
		)
	}
	put(204, "", "2", `"allocations":{}`)
	if gb := c.generation(b); gb != 3.0 {
		t.Errorf("remove all allocations: the provider's generation is %v, want 3", gb)
	}
	c.same(c.want(200, "", "1.39", "GET", path, ""), `{"allocations":{}}`)
	put(204, "", "null", vcpus(a, 1))
	c.want(200, `"consumer_generation":1`, "1.28", "GET", path, "")
}

func TestAllocations_FailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":10,"min_unit":2,"max_unit":6,"step_size":2}}`)
	consumer := uuid.NewString()
	body := func(allocations string) string {
		return "{" + allocations + `,"project_id":"p","user_id":"u","consumer_generation":null}`
	}
	ghost := uuid.NewString()

	for _, tc := range []struct {
		status            int
		allocations, text string
	}{
		{400, vcpus(ghost, 2), "Allocation for resource provider '" + ghost + "' that does not exist."},
		{400, vcpus(strings.ToUpper(p), 2), "that does not exist."},
		{400, strings.Replace(vcpus(p, 2), "VCPU", "CUSTOM_NO", 1), "No such resource class CUSTOM_NO."},
		{409, strings.Replace(vcpus(p, 2), "VCPU", "DISK_GB", 1), "Inventory for 'DISK_GB' on resource provider '" + p + "' invalid."},
		{409, vcpus(p, 1), "The requested amount would violate inventory constraints."},
		{409, vcpus(p, 3), "The requested amount would violate inventory constraints."},
		{409, vcpus(p, 8), "The requested amount would violate inventory constraints."},
		{409, fmt.Sprintf(`"allocations":{%q:{"resources":{"VCPU":1e30}}}`, p), "The requested amount would violate inventory constraints."},
	} {
		t.Run(tc.allocations, func(t *testing.T) {
			c := c.in(t)
			a := c.want(tc.status, tc.text, "1.28", "PUT", "/allocations/"+consumer, body(tc.allocations))
			if a.code() != "placement.undefined_code" {
				t.Errorf(
					"PUT allocations, refused because of %q: got code %v, want placement.undefined_code",
					tc.text,
					a.code(),
				)
			}
			c.want(tc.status, tc.text, "1.28", "POST", "/allocations",
				fmt.Sprintf(`{%q:%s}`, consumer, body(tc.allocations)))
			c.same(c.want(200, "", "1.39", "GET", "/allocations/"+consumer, ""), `{"allocations":{}}`)
		})
	}
	c.want(
		400,
		"Unable to allocate inventory for consumer "+consumer+": No such",
		"1.28",
		"PUT",
		"/allocations/"+consumer,
		body(strings.Replace(vcpus(p, 2), "VCPU", "CUSTOM_NO", 1)),
	)
	c.want(204, "", "1.28", "PUT",
		"/allocations/"+strings.ToUpper(strings.ReplaceAll(consumer, "-", "")), body(vcpus(p, 6)))
	c.want(200, `"consumer_generation":1`, "1.28", "GET", "/allocations/"+consumer, "")
	c.want(409, "The requested amount would exceed the capacity.",
		"1.28", "PUT", "/allocations/"+uuid.NewString(), body(vcpus(p, 6)))
	c.want(400, "Malformed consumer_uuid: x", "1.28", "PUT", "/allocations/x", "{")
	if g := c.generation(p); g != 2.0 {
		t.Errorf("refused writes: the provider's generation is %v, want 2 as before", g)
	}
}

func TestAllocations_PostIsOneTransaction(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p, q := c.provider("p"), c.provider("q")
	c.stock(p, `{"VCPU":{"total":4}}`)
	c.stock(q, `{"VCPU":{"total":4}}`)
	a, b := uuid.NewString(), uuid.NewString()
	post := func(status int, text, onA, ga, onB, gb string) answer {
		t.Helper()
		one := func(allocations, g string) string {
			return "{" + allocations + `,"project_id":"p","user_id":"u","consumer_generation":` + g + "}"
		}
		return c.want(status, text, "1.28", "POST", "/allocations",
			fmt.Sprintf(`{%q:%s,%q:%s}`, a, one(onA, ga), b, one(onB, gb)))
	}

	post(204, "", vcpus(p, 4), "null", vcpus(q, 4), "null")
	post(204, "", vcpus(q, 4), "1", vcpus(p, 4), "1") // the two consumers swap their providers
	if gp, gq := c.generation(p), c.generation(q); gp != 3.0 || gq != 3.0 {
		t.Errorf("two consumers swap their providers: the generations are %v and %v, want 3 and 3", gp, gq)
	}
	post(409, "exceed the capacity", vcpus(p, 4), "2", vcpus(p, 4), "2")
	post(409, "expected 2 but got 1", vcpus(p, 4), "2", `"allocations":{}`, "1")
	post(204, "", vcpus(p, 4), "2", `"allocations":{}`, "2")
	c.same(c.want(200, "", "1.28", "GET", "/allocations/"+b, ""), `{"allocations":{}}`)
	post(204, "", `"allocations":{}`, "3", `"allocations":{}`, "null")
	c.same(
		c.want(200, "", "1.0", "GET", "/resource_providers/"+p+"/usages", ""),
		`{"resource_provider_generation":5,"usages":{"VCPU":0}}`,
	)
	c.want(204, "", "1.13", "POST", "/allocations",
		fmt.Sprintf(`{%q:{"allocations":{},"project_id":"p","user_id":"u"}}`, a))
	c.want(400, "does not match any of the regexes: '^[0-9a-fA-F-]{36}$'",
		"1.13", "POST", "/allocations", `{"x":{}}`)
	c.want(400, "enough properties", "1.13", "POST", "/allocations", `{}`)
}

func TestAllocations_OvercommittedConsumerMayShrink(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":10}}`)
	path := "/allocations/" + uuid.NewString()
	put := func(status, n int) {
		t.Helper()
		c.want(status, "", "1.12", "PUT", path, "{"+vcpus(p, n)+`,"project_id":"p","user_id":"u"}`)
	}
	put(204, 8)
	c.stock(p, `{"VCPU":{"total":4}}`)

	put(409, 9)
	put(204, 8)
	put(204, 6)
	put(409, 7)
	put(204, 4)
	put(409, 5)
}

func TestAllocations_InvalidBodyIsRefused(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":10}}`)
	provider := "/resource_providers/" + p
	write := "{" + vcpus(p, 1) +
		`,"project_id":"p","user_id":"u","consumer_generation":null,"consumer_type":"T"}`
	paths := map[string]string{
		"POST /resource_providers":              `{"name":"x"}`,
		"PUT " + provider:                       `{"name":"x"}`,
		"POST " + provider + "/inventories":     `{"resource_class":"VCPU","total":1}`,
		"PUT " + provider + "/inventories":      `{"resource_provider_generation":1,"inventories":{"VCPU":{"total":1}}}`,
		"PUT " + provider + "/inventories/VCPU": `{"resource_provider_generation":1,"total":1}`,
		"PUT " + provider + "/aggregates":       `{"resource_provider_generation":1,"aggregates":[]}`,
		"PUT " + provider + "/traits":           `{"resource_provider_generation":1,"traits":["x"]}`,
		"POST /resource_classes":                `{"name":"CUSTOM_X"}`,
		"PUT /allocations/" + uuid.NewString():  write,
		"POST /allocations":                     `{"` + p + `":` + write + `}`,
	}
	for where, good := range paths {
		method, path, _ := strings.Cut(where, " ")
		for _, bad := range []string{
			"{", "[", `"x"`, "null", "1", "true", "{}", "[]", good + "x", strings.Repeat("[", 100000),
			strings.Replace(good, "{", `{"surprise":1,`, 1), // an unknown field
			strings.NewReplacer(`"x"`, "7", `:1`, `:"1"`, `"VCPU":{`, `"VCPU":{"total":true,"x":{`, "[]", "{}", "CUSTOM_", "custom ").Replace(good),
			strings.NewReplacer(`"x"`, `"\u0000"`, `:1`, `:1.5`, "[]", `["\u0000"]`, "CUSTOM_", "\\u0000").Replace(good),
		} {
			if bad == good {
				t.Fatalf(
					"test data %s: want an invalid body that differs from the valid body, got the same body: %s",
					where,
					bad,
				)
			}
			c.want(400, `"title":"Bad Request"`, "1.39", method, path, bad)
		}
		c.want(413, "", "1.39", method, path, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`)
	}
	for field, text := range map[string]string{
		`"total":0`:                          "0 is less than the minimum of 1",
		`"total":2147483648`:                 "is greater than the maximum of",
		`"total":1e400`:                      "is not of type 'integer'",
		`"total":true`:                       "True is not of type 'integer'",
		`"total":null`:                       "None is not of type 'integer'",
		`"total":1,"reserved":-1`:            "-1 is less than the minimum of 0",
		`"total":1,"step_size":0`:            "Failed validating 'minimum' in schema['properties']['step_size']",
		`"total":1,"allocation_ratio":"x"`:   "'x' is not of type 'number'",
		`"total":1,"allocation_ratio":1e400`: "is greater than the maximum of",
		`"total":1,"allocation_ratio":-1`:    "The reserved value is greater than total.",
	} {
		t.Run(field, func(t *testing.T) {
			c := c.in(t)
			c.want(400, text, "1.39", "PUT", provider+"/inventories/VCPU",
				`{"resource_provider_generation":1,`+field+`}`)
		})
	}
	c.want(200, `"total":10`, "1.39", "PUT", provider+"/inventories/VCPU",
		`{"resource_provider_generation":1,"total":1e1}`)
	c.want(409, "", "1.39", "PUT", provider+"/inventories/VCPU",
		`{"resource_provider_generation":99999999999999999999,"total":1}`)
	c.want(409, "", "1.39", "PUT", provider+"/aggregates",
		`{"resource_provider_generation":-99999999999999999999,"aggregates":[]}`)
}

// The allocations of a consumer are shown in the order in which the client has written them, whatever their
// names are.
func TestAllocations_InWrittenOrder(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := []string{c.provider("a"), c.provider("b"), c.provider("c")}
	for _, id := range p {
		c.stock(id, `{"VCPU":{"total":100},"DISK_GB":{"total":100},"MEMORY_MB":{"total":100}}`)
	}
	slices.Sort(p)
	share := func(classes ...string) string {
		return `{"resources":{"` + strings.Join(classes, `":1,"`) + `":1}}`
	}
	object := func(first, second, third int) string {
		return fmt.Sprintf(
			`{%q:%s,%q:%s,%q:%s}`,
			p[first], share("VCPU", "DISK_GB"), p[second], share("MEMORY_MB"), p[third],
			share("DISK_GB", "MEMORY_MB", "VCPU"),
		)
	}
	rest := `,"project_id":"p","user_id":"u","consumer_type":"T","consumer_generation":%s}`
	shows := func(consumer, allocations string) {
		t.Helper()
		raw := c.want(200, "", "1.11", "GET", "/allocations/"+consumer, "").raw
		if got := regexp.MustCompile(`,"generation":\d+`).ReplaceAllString(raw, ""); got != `{"allocations":`+allocations+`}` {
			t.Errorf("allocations of a consumer: got %s, want %s", got, allocations)
		}
	}
	one, other, old := uuid.NewString(), uuid.NewString(), uuid.NewString()
	c.want(204, "", "1.39", "PUT", "/allocations/"+one,
		`{"allocations":`+object(2, 0, 1)+fmt.Sprintf(rest, "null"))
	shows(one, object(2, 0, 1))
	c.want(204, "", "1.39", "POST", "/allocations",
		`{"`+one+`":{"allocations":`+object(1, 2, 0)+fmt.Sprintf(rest, "1")+
			`,"`+other+`":{"allocations":`+object(0, 2, 1)+fmt.Sprintf(rest, "null")+`}`)
	shows(one, object(1, 2, 0))
	shows(other, object(0, 2, 1))
	g := c.generation(p[0])
	c.want(204, "", "1.39", "POST", "/reshaper",
		fmt.Sprintf(`{"inventories":{%q:{"resource_provider_generation":%v,"inventories":`+
			`{"VCPU":{"total":99},"DISK_GB":{"total":99},"MEMORY_MB":{"total":99}}}},"allocations":{%q:{"allocations":%s`+rest+`}}`, p[0], g, one, object(2, 1, 0), "2"))
	shows(one, object(2, 1, 0))

	single := fmt.Sprintf(`{%q:%s}`, p[1], share("VCPU", "DISK_GB", "MEMORY_MB"))
	c.want(204, "", "1.39", "PUT", "/allocations/"+old, `{"allocations":`+single+fmt.Sprintf(rest, "null"))
	shows(old, single)
	list := func(i int, classes ...string) string {
		return fmt.Sprintf(`{"resource_provider":{"uuid":%q},%s`,
			p[i], strings.TrimPrefix(share(classes...), "{"))
	}
	split := []string{list(1, "VCPU"), list(2, "VCPU", "DISK_GB"), list(1, "MEMORY_MB", "DISK_GB")}
	c.want(204, "", "1.0", "PUT", "/allocations/"+old, `{"allocations":[`+strings.Join(split, ",")+`]}`)
	shows(
		old,
		fmt.Sprintf(`{%q:%s,%q:%s}`, p[2], share("VCPU", "DISK_GB"), p[1], share("MEMORY_MB", "DISK_GB")),
	)
}
