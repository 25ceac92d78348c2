package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// reshaped returns the part of a body that sets a provider's inventories.
func reshaped(provider string, generation any, inventories string) string {
	return fmt.Sprintf(`%q:{"resource_provider_generation":%v,"inventories":%s}`,
		provider, generation, inventories)
}

// holds returns the part of a body that sets a consumer's allocations, in the format since microversion 1.38.
func holds(consumer string, generation any, allocations string) string {
	return fmt.Sprintf(
		`%q:{%s,"project_id":"p","user_id":"u","consumer_generation":%v,"consumer_type":"T"}`,
		consumer, allocations, generation,
	)
}

func reshape(inventories []string, allocations ...string) string {
	return fmt.Sprintf(`{"inventories":{%s},"allocations":{%s}}`,
		strings.Join(inventories, ","), strings.Join(allocations, ","))
}

// TestReshape_MovesInventoriesWithAllocations moves inventories from a host's provider to a new child
// provider while two servers have allocations of the moved resources.
func TestReshape_MovesInventoriesWithAllocations(t *testing.T) {
	t.Parallel()
	c := serve(t)
	host := c.provider("host")
	c.stock(host, `{"VCPU":{"total":8},"VGPU":{"total":2},"DISK_GB":{"total":20}}`)
	child := uuid.NewString()
	c.want(200, "", "1.39", "POST", "/resource_providers",
		fmt.Sprintf(`{"name":"gpu","uuid":%q,"parent_provider_uuid":%q}`, child, host))
	a, b, other := uuid.NewString(), uuid.NewString(), uuid.NewString()
	both := func(vgpus int) string {
		return fmt.Sprintf(`"allocations":{%q:{"resources":{"VCPU":2,"VGPU":%d}}}`, host, vgpus)
	}
	c.want(204, "", "1.39", "POST", "/allocations",
		"{"+holds(a, "null", both(1))+","+holds(b, "null", both(1))+"}")
	// the reshape does not change this allocation
	c.want(204, "", "1.39", "POST", "/allocations", "{"+holds(other, "null", vcpus(host, 4))+"}")
	if g := c.generation(host); g != 3.0 {
		t.Fatalf("generation of the host before the reshape: got %v, want 3", g)
	}

	moved := fmt.Sprintf(
		`"allocations":{%q:{"resources":{"VCPU":2}},%q:{"resources":{"VGPU":1}}},"mappings":{"":[%q]}`,
		host, child, host,
	)
	c.want(204, "", "1.39", "POST", "/reshaper", reshape([]string{
		reshaped(host, 3, `{"VCPU":{"total":8},"DISK_GB":{"total":20}}`),
		reshaped(child, 0, `{"VGPU":{"total":2,"max_unit":1}}`),
	}, holds(a, 1, moved), holds(b, 1, moved)))

	c.same(
		c.want(200, "", "1.39", "GET", "/resource_providers/"+host+"/usages", ""),
		`{"resource_provider_generation":6,"usages":{"VCPU":8,"DISK_GB":0}}`,
	)
	c.same(
		c.want(200, "", "1.39", "GET", "/resource_providers/"+child+"/usages", ""),
		`{"resource_provider_generation":3,"usages":{"VGPU":2}}`,
	)
	c.want(200, `"max_unit":1`, "1.39", "GET", "/resource_providers/"+child+"/inventories/VGPU", "")
	c.want(200, `"consumer_generation":2`, "1.39", "GET", "/allocations/"+a, "")
	c.want(200, `"consumer_generation":1`, "1.39", "GET", "/allocations/"+other, "")
}

// TestReshape_GenerationsAsInPlacement checks the exact generations of providers and consumers, because
// clients send the expected generation in their next request.
func TestReshape_GenerationsAsInPlacement(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p, q := c.provider("p"), c.provider("q")
	c.stock(p, `{"VCPU":{"total":8}}`)
	c.stock(q, `{"VCPU":{"total":8}}`)
	consumer := uuid.NewString()
	at := 1
	step := func(by int, body string) {
		t.Helper()
		c.want(204, "", "1.39", "POST", "/reshaper", body)
		at += by
		if g := c.generation(p); g != float64(at) {
			t.Fatalf("generation of the provider: got %v, want %d", g, at)
		}
	}
	some := `{"VCPU":{"total":8}}`
	step(2, reshape([]string{reshaped(p, 1, some)}))
	step(3, reshape([]string{reshaped(p, 3, some)}, holds(consumer, "null", vcpus(p, 1))))
	step(3, reshape([]string{reshaped(p, 6, some)}, holds(consumer, 1, `"allocations":{}`)))
	step(3, reshape([]string{reshaped(p, 9, some)}, holds(consumer, "null", vcpus(p, 1))))
	step(2, reshape([]string{reshaped(p, 12, `{}`)}, holds(consumer, 1, `"allocations":{}`)))
	step(1, reshape([]string{reshaped(p, 14, `{}`)}))
	// moves the consumer to the provider q
	step(0, reshape([]string{reshaped(q, 1, some)}, holds(consumer, "null", vcpus(q, 1))))
	if g := c.generation(q); g != 4.0 {
		t.Errorf(
			"reshape that moves a consumer to another provider: that provider's generation is %v, want 4",
			g,
		)
	}
	step(2, reshape([]string{reshaped(p, 15, some)}))
	// the provider p appears only in the allocations
	step(1, reshape([]string{reshaped(q, 4, some)}, holds(consumer, 1, vcpus(p, 1))))
	if g := c.generation(q); g != 6.0 {
		t.Errorf(
			"reshape that moves a consumer away from its provider: the old provider's generation is %v, want 6",
			g,
		)
	}
	allocations := fmt.Sprintf(`{"allocations":{%q:{"resources":{"VCPU":1},"generation":18}},
		"project_id":"p","user_id":"u","consumer_generation":2,"consumer_type":"T"}`, p)
	c.same(c.want(200, "", "1.39", "GET", "/allocations/"+consumer, ""), allocations)
}

func TestReshape_OrderOfErrors(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p, q := c.provider("p"), c.provider("q")
	c.stock(p, `{"VCPU":{"total":8},"DISK_GB":{"total":8}}`)
	mine, other, ghost := uuid.NewString(), uuid.NewString(), uuid.NewString()
	c.want(204, "", "1.39", "POST", "/allocations",
		"{"+holds(mine, "null", vcpus(p, 2))+","+holds(other, "null", vcpus(p, 2))+"}")
	before := []answer{
		c.send("1.39", "GET", "/resource_providers/"+p+"/inventories", ""),
		c.send("1.39", "GET", "/resource_providers/"+p+"/allocations", ""),
	}
	const (
		undefined, concurrent = "placement.undefined_code", "placement.concurrent_update"
		notFound, inUse       = "placement.resource_provider.not_found", "placement.inventory.inuse"
	)
	vcpu, unknown := `{"VCPU":{"total":8}}`, strings.Replace(vcpus(p, 1), "VCPU", "CUSTOM_NO", 1)
	for _, tc := range []struct {
		status     int
		code, text string
		body       string
	}{
		// Each body also contains all errors that the API checks later than the expected error, so the test
		// proves the order of the checks.
		{400, undefined, "'allocations' is a required property", `{"inventories":{` + reshaped(ghost, 0, `{}`) + `}}`},
		{400, undefined, "'x' was unexpected", `{"x":1,"inventories":{` + reshaped(ghost, 0, `{}`) + `},"allocations":{}}`},
		{400, undefined, "does not have enough properties", reshape(nil, holds(mine, 7, vcpus(ghost, 1)))},
		{400, undefined, "less than the minimum of 1", reshape([]string{reshaped(ghost, 0, `{"VCPU":{"total":0}}`)})},
		{400, undefined, "does not match any of the regexes", reshape([]string{reshaped("x", 0, vcpu)})},
		{400, notFound, "Resource provider " + ghost + " in inventories not found: ", reshape([]string{reshaped(ghost, 0, vcpu)}, holds(mine, 7, unknown))},
		{409, concurrent, "resource provider generation conflict for provider " + p + ": actual: 2, given: 1",
			reshape([]string{reshaped(p, 1, vcpu)}, holds(mine, 7, unknown))},
		{409, concurrent, "consumer generation conflict - expected 1 but got 7", reshape([]string{reshaped(p, 2, `{}`)}, holds(mine, 7, vcpus(ghost, 1)))},
		{409, concurrent, "expected 1 but got None", reshape([]string{reshaped(p, 2, `{}`)}, holds(mine, "null", vcpus(p, 1)))},
		{409, concurrent, "expected null but got 1", reshape([]string{reshaped(p, 2, `{}`)}, holds(ghost, 1, vcpus(p, 1)))},
		{400, undefined, "Allocation for resource provider '" + ghost + "' that does not exist.",
			reshape([]string{reshaped(p, 2, `{"CUSTOM_NO":{"total":1}}`)}, holds(mine, 1, vcpus(ghost, 1)))},
		{400, undefined, "malformed reshaper data: No such resource class CUSTOM_NO.", reshape([]string{reshaped(p, 2, `{}`)}, holds(mine, 1, unknown))},
		{400, undefined, "malformed reshaper data: No such resource class CUSTOM_NO.", reshape([]string{reshaped(p, 2, `{"CUSTOM_NO":{"total":1}}`)})},
		{409, inUse, "update conflict: Inventory for 'VCPU' on resource provider '" + p + "' in use.", reshape([]string{reshaped(p, 2, `{}`)}, holds(mine, 1, `"allocations":{}`))},
		{409, inUse, "update conflict: Inventory for 'VCPU' on", reshape([]string{reshaped(p, 2, `{"DISK_GB":{"total":8}}`)}, holds(mine, 1, vcpus(p, 1)), holds(other, 1, `"allocations":{}`))},
		{409, undefined, "The requested amount would exceed the capacity.", reshape([]string{reshaped(p, 2, vcpu)}, holds(mine, 1, vcpus(p, 7)))},
		{409, undefined, "The requested amount would exceed the capacity.", reshape([]string{reshaped(p, 2, `{"VCPU":{"total":8,"reserved":5}}`)}, holds(mine, 1, vcpus(p, 3)))},
		{409, undefined, "would violate inventory constraints", reshape([]string{reshaped(p, 2, `{"VCPU":{"total":8,"step_size":2}}`)}, holds(mine, 1, vcpus(p, 1)))},
		{409, undefined, "Inventory for 'VCPU' on resource provider '" + q + "' invalid.", reshape([]string{reshaped(p, 2, vcpu)}, holds(mine, 1, vcpus(q, 1)))},
	} {
		t.Run(tc.code, func(t *testing.T) {
			c := c.in(t)
			a := c.want(tc.status, tc.text, "1.39", "POST", "/reshaper", tc.body)
			if a.code() != tc.code {
				t.Errorf("%s: got the error code %v, want the one in the test case", tc.text, a.code())
			}
		})
	}
	after := []answer{
		c.send("1.39", "GET", "/resource_providers/"+p+"/inventories", ""),
		c.send("1.39", "GET", "/resource_providers/"+p+"/allocations", ""),
	}
	for i := range before {
		c.same(after[i], before[i].raw)
	}
	c.same(c.want(200, "", "1.39", "GET", "/allocations/"+ghost, ""), `{"allocations":{}}`)
	if g := c.generation(q); g != 0.0 {
		t.Errorf("after refused reshapes, a provider's generation is %v, want 0", g)
	}
}

func TestReshape_FormatOfEveryVersion(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	c.stock(p, `{"VCPU":{"total":8}}`)
	body := func(generation any, more string) string {
		return reshape([]string{reshaped(p, generation, `{"VCPU":{"total":8}}`)}, fmt.Sprintf(
			`%q:{%s,"project_id":"p","user_id":"u","consumer_generation":null%s}`,
			uuid.NewString(), vcpus(p, 1), more,
		))
	}
	c.want(404, "", "1.29", "POST", "/reshaper", body(1, ""))
	c.want(405, "", "1.30", "GET", "/reshaper", "")
	c.want(415, "", "1.30", "POST", "/reshaper", body(1, ""), "Content-Type", "text/plain")
	c.want(403, "placement:reshaper:reshape", "1.30", "POST", "/reshaper", "{", "X-Auth-Token", "admin")
	c.want(400, "'mappings' was unexpected", "1.33", "POST", "/reshaper",
		body(1, `,"mappings":{"":["`+p+`"]}`))
	c.want(400,
		"'consumer_type' was unexpected", "1.37", "POST", "/reshaper", body(1, `,"consumer_type":"T"`))
	c.want(400, "'consumer_type' is a required property", "1.38", "POST", "/reshaper", body(1, ""))
	c.want(204, "", "1.30", "POST", "/reshaper", body(1, ""))
	c.want(204, "", "1.34", "POST", "/reshaper", body(4, `,"mappings":{"":["`+p+`"]}`))
	c.want(204, "", "1.38", "POST", "/reshaper", body(7, `,"mappings":{"":["`+p+`"]},"consumer_type":"T"`))

	// POST /reshaper accepts a reserved amount that exceeds the total.
	c.want(204, "", "1.39", "POST", "/reshaper",
		reshape([]string{reshaped(p, 10, `{"VCPU":{"total":8},"DISK_GB":{"total":1,"reserved":7}}`)}))
	c.want(200, `"reserved":7`, "1.39", "GET", "/resource_providers/"+p+"/inventories/DISK_GB", "")
	c.want(400, "greater than total", "1.39", "PUT", "/resource_providers/"+p+"/inventories",
		`{"resource_provider_generation":12,"inventories":{"DISK_GB":{"total":1,"reserved":7}}}`)
	// POST /reshaper may reduce the capacity below the existing allocations, but refuses new allocations that
	// exceed the capacity.
	c.want(204, "", "1.39", "POST", "/reshaper", reshape([]string{reshaped(p, 12, `{"VCPU":{"total":1}}`)}))
	c.want(200, `"VCPU":3`, "1.39", "GET", "/resource_providers/"+p+"/usages", "")
}
