package main

import (
	"fmt"
	"net/http"

	"berth/starter/cli"
)

// generationConflict is Placement's answer to a write with an old generation.
func generationConflict() (int, any) {
	return 409, cli.Object{
		"errors": []cli.Object{{
			"status": 409,
			"title":  "Conflict",
			"code":   "placement.concurrent_update",
			"detail": "There was a conflict when trying to complete your request.\n\n generation moved  ",
		}},
	}
}

// allocation answers requests for the allocations of a consumer.
func (s *apiStub) allocation(r *http.Request, consumer string, body cli.Object) (int, any) {
	current := s.consumers[consumer]
	switch {
	case r.Method == "GET" && current == nil:
		return 200, cli.Object{"allocations": cli.Object{}}
	case r.Method == "GET":
		return 200, current
	case fmt.Sprint(body["consumer_generation"]) != fmt.Sprint(current["consumer_generation"]):
		return generationConflict()
	case len(body["allocations"].(cli.Object)) == 0:
		delete(s.consumers, consumer)
		return 204, nil
	}
	body["consumer_generation"] = integerOf(current["consumer_generation"]) + 1
	s.consumers[consumer] = body
	return 204, nil
}

// migrate simulates a request that creates records for at most `limit` consumers. When only one consumer
// remains, the first request migrates no consumer, as if another writer had locked the last consumer.
func (s *apiStub) migrate(limit int) (int, any) {
	n := min(limit, s.unrecorded)
	if s.unrecorded == 1 {
		n, s.unrecorded = 0, 0
		return 200, cli.Object{"migrated": 0, "remaining": 1}
	}
	s.unrecorded -= n
	return 200, cli.Object{"migrated": n, "remaining": s.unrecorded}
}

// history returns the generation history of an object that was created and then changed once.
func (s *apiStub) history(collection, id string) (int, any) {
	one, other := "consumer", "provider"
	if collection == "providers" {
		one, other = other, one
	}
	change := func(n int, from any, to int) cli.Object {
		return cli.Object{
			"id":            n,
			"at":            "2030-01-31T10:00:00Z",
			"actor":         "ann/demo",
			"cause":         "allocations",
			one:             id,
			one + "_from":   from,
			one + "_to":     to,
			other:           "x",
			other + "_from": 7,
			other + "_to":   8,
		}
	}
	return 200, cli.Object{"changes": []cli.Object{change(2, 1, 2), change(1, nil, 1)}}
}

// inventory answers requests for a part of a provider: inventories, usages, traits or aggregates.
func (s *apiStub) inventory(r *http.Request, id, part string, body cli.Object) (int, any) {
	o, ok := s.collections["resource_providers"][id]
	if !ok {
		return missing(id)
	}
	if r.Method == "PUT" {
		if fmt.Sprint(body["resource_provider_generation"]) != fmt.Sprint(o["generation"]) {
			return generationConflict()
		}
		o["generation"], o["_"+part] = o["generation"].(int)+1, body[part]
	}
	return 200, cli.Object{part: o["_"+part], "resource_provider_generation": o["generation"]}
}
