package main

import (
	"fmt"
	"strconv"
)

// figure is one kind of request that peer measures.
type figure struct {
	name  string
	title string
	// share of the number of requests of the command line
	share float64
	// returns the n-th request. The requests depend on nothing else, so both servers get the same. The client
	// of the request is n % clients.
	request func(d dataset, n int) request
	// returns the requests that read what the n-th request has changed; nil: the request is a read
	effects func(d dataset, n int) []request
	// The server may choose which of the candidates it returns.
	subset bool
}

// figures lists all figures in the order in which they are measured.
var figures = []figure{
	{
		name:    "allocation-one",
		title:   "`PUT /allocations/{consumer}` of new consumers, all on one provider",
		share:   1,
		request: allocateOnSoleProvider,
		effects: effectsOfAllocation(allocateOnSoleProvider, func(dataset, int) string { return soleProvider() }),
	},
	{
		name:    "allocation-many",
		title:   "`PUT /allocations/{consumer}` of new consumers, in turn on all providers",
		share:   1,
		request: allocateInTurn,
		effects: effectsOfAllocation(allocateInTurn, dataset.provider),
	},
	{
		name:    "allocation-update",
		title:   "`PUT /allocations/{consumer}` of existing consumers with other amounts",
		share:   1,
		request: updateAllocation,
		effects: effectsOfAllocation(updateAllocation, func(d dataset, n int) string { return d.provider(n % d.owned()) }),
	},
	{
		name:  "allocation-get",
		title: "`GET /allocations/{consumer}`",
		share: 1,
		request: func(d dataset, n int) request {
			return request{method: "GET", path: "/allocations/" + ownedConsumer(n%d.owned())}
		},
	},
	{
		name:    "aggregates",
		title:   "`PUT /resource_providers/{uuid}/aggregates`",
		share:   1,
		request: setAggregates,
		effects: func(d dataset, n int) []request {
			return []request{{method: "GET", path: setAggregates(d, n).path}}
		},
	},
	{
		name:    "candidates-10",
		title:   "`GET /allocation_candidates` with `limit=10`",
		share:   0.25,
		request: candidates("&limit=10"),
		subset:  true,
	},
	{
		name:    "candidates-100",
		title:   "`GET /allocation_candidates` with `limit=100`",
		share:   0.25,
		request: candidates("&limit=100"),
		subset:  true,
	},
	{
		name:    "candidates-all",
		title:   "`GET /allocation_candidates` without a limit",
		share:   0.05,
		request: candidates(""),
	},
}

func allocateOnSoleProvider(_ dataset, n int) request {
	return allocate(uuidOf("consumer of the sole provider", n), soleProvider(), "null", 2)
}

func allocateInTurn(d dataset, n int) request {
	return allocate(uuidOf("new consumer", n), d.provider(n), "null", 2)
}

// updateAllocation changes the consumers in turn. Each update increases the generation of the consumer, which
// is 1 after its creation.
func updateAllocation(d dataset, n int) request {
	consumer, updates := n%d.owned(), n/d.owned()
	return allocate(ownedConsumer(consumer), d.provider(consumer), strconv.Itoa(updates+1), 2+updates%2)
}

// setAggregates gives the providers of aggregates new aggregates in turn. Each change increases the
// generation of the provider, which is 0 after its creation.
func setAggregates(d dataset, n int) request {
	provider, changes := n%d.owned(), n/d.owned()
	return request{
		"PUT", "/resource_providers/" + aggregateProvider(provider) + "/aggregates",
		fmt.Sprintf(`{"aggregates":[%q,%q],"resource_provider_generation":%d}`,
			uuidOf("aggregate", changes%2), uuidOf("aggregate", 2+provider%10), changes),
	}
}

// candidates returns requests for a server of a usual size.
func candidates(limit string) func(dataset, int) request {
	return func(dataset, int) request {
		return request{
			method: "GET",
			path:   "/allocation_candidates?resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20" + limit,
		}
	}
}

// effectsOfAllocation returns the requests that read an allocation and the state of its provider.
func effectsOfAllocation(
	change func(dataset, int) request,
	provider func(dataset, int) string,
) func(dataset, int) []request {
	return func(d dataset, n int) []request {
		return append([]request{{method: "GET", path: change(d, n).path}}, stateOfProvider(provider(d, n))...)
	}
}

// stateOfProvider returns the requests that read a provider, its inventories and what is allocated there.
func stateOfProvider(id string) []request {
	var all []request
	for _, part := range []string{"", "/inventories", "/usages", "/allocations"} {
		all = append(all, request{method: "GET", path: "/resource_providers/" + id + part})
	}
	return all
}
