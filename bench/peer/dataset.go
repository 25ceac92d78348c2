package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// dataset is the content of both servers before the measurements: resource providers with an inventory and
// traits, one consumer of each of these providers, and a provider without inventory for each aggregate
// change. All UUIDs are computed, so both servers have the same.
type dataset struct {
	clients, providers int
}

// traitCount is the number of traits of each provider; Nova sets about 40 on a compute host.
const traitCount = 40

// uuidOf returns the UUID of the object of a kind with a number.
func uuidOf(kind string, n int) string {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d", kind, n)).String()
}

func (d dataset) provider(n int) string { return uuidOf("provider", n%d.providers) }

// owned returns the number of objects that only one client changes: the client of the n-th request is
// n % clients, so the number is a multiple of the number of clients.
func (d dataset) owned() int { return d.clients * max(1, d.providers/d.clients) }

// create creates the dataset on both servers at the same time.
func (d dataset) create(ctx context.Context, peers [2]*peer) error {
	traits, err := commonTraits(peers)
	if err != nil {
		return err
	}
	errs := make([]error, len(peers))
	var both sync.WaitGroup
	for i, p := range peers {
		both.Go(func() {
			// First all providers, then the consumers: an allocation needs its provider.
			for _, step := range []func(n int) []request{
				func(n int) []request { return d.providerRequests(n, traits) },
				d.consumerRequests,
			} {
				if errs[i] == nil {
					_, errs[i] = p.sendAll(ctx, 0, d.clients*ceilDiv(d.providers, d.clients), step)
				}
			}
		})
	}
	both.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("create the dataset: %w", err)
		}
	}
	return nil
}

// commonTraits returns traits that both servers know.
func commonTraits(peers [2]*peer) ([]string, error) {
	var known [2][]string
	for i, p := range peers {
		body, err := p.send(0, request{method: "GET", path: "/traits?name=startswith:HW_CPU_X86_"})
		if err != nil {
			return nil, err
		}
		var answer struct{ Traits []string }
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, err
		}
		known[i] = answer.Traits
	}
	common := slices.DeleteFunc(known[0], func(t string) bool { return !slices.Contains(known[1], t) })
	slices.Sort(common)
	if len(common) < traitCount {
		return nil, fmt.Errorf("the servers have %d common traits, want %d", len(common), traitCount)
	}
	return common[:traitCount], nil
}

// providerRequests returns the requests that create the n-th provider with an inventory, and the n-th
// provider of aggregates.
func (d dataset) providerRequests(n int, traits []string) []request {
	var all []request
	if n < d.providers {
		all = append(all, d.createProvider(d.provider(n), traits)...)
	}
	if n < d.owned() {
		id := aggregateProvider(n)
		all = append(all, request{"POST", "/resource_providers", fmt.Sprintf(`{"name":%q,"uuid":%q}`, id, id)})
	}
	if n == 0 {
		all = append(all, d.createProvider(soleProvider(), traits)...)
	}
	return all
}

func (d dataset) createProvider(id string, traits []string) []request {
	const unlimited = `{"total":2147483647}`
	return []request{
		{"POST", "/resource_providers", fmt.Sprintf(`{"name":%q,"uuid":%q}`, id, id)},
		{"PUT", "/resource_providers/" + id + "/inventories", `{"resource_provider_generation":0,"inventories":{` +
			`"VCPU":` + unlimited + `,"MEMORY_MB":` + unlimited + `,"DISK_GB":` + unlimited + `}}`},
		{"PUT", "/resource_providers/" + id + "/traits", `{"resource_provider_generation":1,"traits":["` +
			strings.Join(traits, `","`) + `"]}`},
	}
}

// consumerRequests returns the requests that create the n-th consumer.
func (d dataset) consumerRequests(n int) []request {
	if n >= d.owned() {
		return nil
	}
	return []request{allocate(ownedConsumer(n), d.provider(n), "null", 1)}
}

// ownedConsumer returns the UUID of a consumer that exists before the measurements.
func ownedConsumer(n int) string { return uuidOf("consumer", n) }

// aggregateProvider returns the UUID of a provider without inventory. Only the figure of aggregates changes
// it, so its generation is known.
func aggregateProvider(n int) string { return uuidOf("provider of aggregates", n) }

// soleProvider returns the UUID of the provider on which all clients of a figure allocate.
func soleProvider() string { return uuidOf("sole provider", 0) }

// allocate returns the request that sets the allocations of a consumer. The generation is that of the
// consumer: null if it does not exist yet.
func allocate(consumer, provider, generation string, cpus int) request {
	return request{"PUT", "/allocations/" + consumer, fmt.Sprintf(
		`{"allocations":{%q:{"resources":{"VCPU":%d,"MEMORY_MB":4096,"DISK_GB":20}}},`+
			`"project_id":"bench","user_id":"bench","consumer_type":"INSTANCE","consumer_generation":%s}`,
		provider, cpus, generation)}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
