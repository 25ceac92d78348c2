package placement_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
)

func TestRace_OneWriterOfAConsumerWins(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	hosts := []string{a.provider("even"), a.provider("odd")}
	for _, host := range hosts {
		a.stock(host, `{"VCPU":{"total":1000000}}`)
	}
	entry := func(consumer, generation string, i int) string {
		taken := fmt.Sprintf(`{%q:{"resources":{"VCPU":%d}}}`, hosts[i%2], i+1)
		if generation != "null" && i%16 == 5 { // some requests remove all allocations
			taken = "{}"
		}
		return fmt.Sprintf(
			`{"allocations":%s,"project_id":"p","user_id":"u%d","consumer_generation":%s,"consumer_type":"T"}`,
			taken, i, generation,
		)
	}

	for range rounds(t) {
		consumer := uuid.NewString()
		for _, generation := range []string{"null", "1"} {
			i := a.contend(func(i int) request {
				r := request{
					"1.39",
					"PUT",
					"/allocations/" + consumer,
					entry(consumer, generation, i),
					409,
					concurrent,
				}
				if i%4 == 3 { // some requests write by POST /allocations
					r.method, r.path = "POST", "/allocations"
					r.body = fmt.Sprintf(`{%q:%s}`, consumer, r.body)
				}
				return r
			})

			got := a.want(200, "", "1.39", "GET", "/allocations/"+consumer, "").body
			if generation != "null" && i%16 == 5 {
				a.same(answer{body: got}, `{"allocations":{}}`)
				continue
			}
			shown, _ := got["allocations"].(map[string]any)
			resources, _ := shown[hosts[i%2]].(map[string]any)
			got["allocations"] = resources["resources"]
			a.same(answer{body: got}, fmt.Sprintf(
				`{"allocations":{"VCPU":%d},"project_id":"p","user_id":"u%d","consumer_type":"T","consumer_generation":%d}`,
				i+1, i, map[string]int{"null": 1, "1": 2}[generation],
			))
		}
	}

	a.checkInvariants()
	moved := 0.0
	for _, host := range hosts {
		moved += a.generation(host).(float64) - 1
	}
	if won := float64(2 * rounds(t)); moved != won {
		t.Errorf("%v writes succeeded, but the providers' generations grew by %v; want the same number",
			won, moved)
	}
}

func TestRace_OneWriterOfAProviderWins(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	p := a.provider("p")
	a.stock(p, `{"VCPU":{"total":1}}`)
	for i := range writers {
		a.want(201, "", "1.39", "PUT", fmt.Sprint("/traits/CUSTOM_W", i), "")
	}
	shared := uuid.NewString()
	own := make([]string, writers)
	for i := range own {
		own[i] = uuid.NewString()
	}
	generation, avx := 1, false
	// Each function returns a write and the text that the response to a later GET must contain. Consecutive
	// writes of traits differ in the trait HW_CPU_X86_AVX, because a write that does not change the traits
	// does not increase the generation.
	kinds := []func(i int) (path, body, shown string){
		func(i int) (string, string, string) {
			shown := fmt.Sprintf(`"aggregates":[%q,%q]`, min(shared, own[i]), max(shared, own[i]))
			return "/aggregates", shown, shown
		},
		func(i int) (string, string, string) {
			shown := fmt.Sprintf(`"traits":["CUSTOM_W%d"]`, i)
			if !avx {
				shown = fmt.Sprintf(`"traits":["HW_CPU_X86_AVX","CUSTOM_W%d"]`, i)
			}
			return "/traits", shown, shown
		},
		func(i int) (string, string, string) {
			total := 1000*generation + i
			return "/inventories", fmt.Sprintf(`"inventories":{"VCPU":{"total":%d}}`, total),
				fmt.Sprintf(
					`"inventories":{"VCPU":{"total":%d,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1}}`,
					total,
				)
		},
		func(i int) (string, string, string) {
			shown := fmt.Sprintf(
				`"total":%d,"reserved":0,"min_unit":1,"max_unit":9,"step_size":1,"allocation_ratio":2`,
				1000*generation+i,
			)
			return "/inventories/VCPU", shown, shown
		},
	}

	for range rounds(t) {
		for contest := range len(kinds) + 1 { // first the kinds one after another, then all kinds together
			of := func(i int) (path, body, shown string) {
				if contest < len(kinds) {
					return kinds[contest](i)
				}
				return kinds[i%len(kinds)](i)
			}
			i := a.contend(func(i int) request {
				path, body, _ := of(i)
				return request{
					"1.39",
					"PUT",
					"/resource_providers/" + p + path,
					fmt.Sprintf(`{"resource_provider_generation":%d,%s}`, generation, body),
					409,
					concurrent,
				}
			})
			path, _, shown := of(i)
			generation++
			a.same(
				a.want(200, "", "1.39", "GET", "/resource_providers/"+p+path, ""),
				fmt.Sprintf(`{"resource_provider_generation":%d,%s}`, generation, shown),
			)
			if path == "/traits" {
				avx = !avx
			}
		}

		a.contend(func(i int) request {
			return request{
				"1.39",
				"POST",
				"/resource_providers/" + p + "/inventories",
				fmt.Sprintf(`{"resource_class":"DISK_GB","total":%d}`, i+1),
				409,
				concurrent,
			}
		})
		a.contend(func(int) request {
			return request{
				"1.39",
				"DELETE",
				"/resource_providers/" + p + "/inventories/DISK_GB",
				"",
				404,
				"placement.undefined_code",
			}
		})
		generation += 2
		if at := a.generation(p); at != float64(generation) {
			t.Fatalf("generation of the provider after the writes: want %d, got %v", generation, at)
		}
	}
}

func TestRace_LastUnitIsAllocatedOnce(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	p := a.provider("p")
	a.stock(p, `{"VCPU":{"total":4}}`)
	take := func(consumer string, vcpus int) request {
		body := fmt.Sprintf(
			`{"allocations":{%q:{"resources":{"VCPU":%d}}},"project_id":"p","user_id":"u","consumer_generation":null}`,
			p,
			vcpus,
		)
		return request{"1.28", "PUT", "/allocations/" + consumer, body, 409, "placement.undefined_code"}
	}
	if status, _ := a.do(take(uuid.NewString(), 3)); status != 204 {
		t.Fatalf("allocate 3 of 4 units: got status %d, want 204", status)
	}
	used := func(want ...float64) {
		seen := a.want(200, "", "1.28", "GET", "/resource_providers/"+p+"/usages", "").body["usages"].(map[string]any)["VCPU"].(float64)
		for _, w := range want {
			if seen == w {
				return
			}
		}
		t.Errorf("used units of the provider: got %v of 4, want one of %v", seen, want)
	}
	over, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-over:
				return
			default:
				used(3, 4)
			}
		}
	}()

	for range rounds(t) {
		consumers := make([]string, writers)
		for i := range consumers {
			consumers[i] = uuid.NewString()
		}
		i := a.contend(func(i int) request { return take(consumers[i], 1) })
		used(4)
		a.want(204, "", "1.28", "DELETE", "/allocations/"+consumers[i], "")
	}
	close(over)
	<-sampled

	a.checkInvariants()
	held, _ := a.want(200, "", "1.28", "GET", "/resource_providers/"+p+"/allocations", "").body["allocations"].(map[string]any)
	if len(held) != 1 {
		t.Errorf("consumers with allocations after all writes: got %d, want 1", len(held))
	}
}

// TestRace_WritersWithoutGenerationAllSucceed covers the older microversions, whose requests have no
// generation.
func TestRace_WritersWithoutGenerationAllSucceed(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	p := a.provider("p")
	a.stock(p, `{"VCPU":{"total":1000}}`)
	consumer, shared := uuid.NewString(), uuid.NewString()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			r := request{
				version: "1.18",
				method:  "PUT",
				path:    "/resource_providers/" + p + "/aggregates",
				body:    fmt.Sprintf(`[%q,%q]`, shared, uuid.NewString()),
			}
			if i%2 == 0 {
				r = request{
					version: "1.12",
					method:  "PUT",
					path:    "/allocations/" + consumer,
					body: fmt.Sprintf(
						`{"allocations":{%q:{"resources":{"VCPU":%d}}},"project_id":"p","user_id":"u"}`,
						p,
						i+1,
					),
				}
			}
			if status, code := a.do(r); status >= 300 {
				t.Errorf("%s %s without a generation: got %d %s, want success",
					r.method, r.path, status, code)
			}
		})
	}
	all.Wait()

	a.checkInvariants()
	got := a.want(200, "", "1.39", "GET", "/allocations/"+consumer, "").body["consumer_generation"]
	if got != float64(writers/2) {
		t.Errorf("after %d writes the consumer has generation %v, want the number of writes", writers/2, got)
	}
}
