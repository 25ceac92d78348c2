package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth/bench/harness"
)

// answerCheck compares the answers of both servers to the same requests.
type answerCheck struct {
	dataset dataset
	peers   [2]*peer
}

// checkedRequests is the number of requests of each figure whose answers are compared before the
// measurements, for each client. The measurements continue with the next request.
const checkedRequests = 1

// figures sends the first requests of each figure to both servers, one after the other, and returns an error
// if the answers differ, or if what a request has changed differs.
func (c answerCheck) figures(ctx context.Context) error {
	for _, f := range figures {
		for n := range checkedRequests * c.dataset.clients {
			if n > 0 && f.request(c.dataset, n) == f.request(c.dataset, 0) {
				break // all requests of the figure are equal
			}
			if err := c.figure(f, n); err != nil {
				return fmt.Errorf("figure %s: %w", f.name, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// figure sends the n-th request of a figure to both servers.
func (c answerCheck) figure(f figure, n int) error {
	if f.subset {
		return c.compareCandidates(f.request(c.dataset, n))
	}
	if err := c.compare(f.request(c.dataset, n)); err != nil || f.effects == nil {
		return err
	}
	return c.compare(f.effects(c.dataset, n)...)
}

// comparedObjects is the number of objects of each kind that state compares.
const comparedObjects = 16

// state compares what the measurements have left: both servers got the same changes, so their providers and
// consumers are equal.
func (c answerCheck) state(ctx context.Context) error {
	all := stateOfProvider(soleProvider())
	for n := range min(comparedObjects, c.dataset.providers) {
		all = append(all, stateOfProvider(c.dataset.provider(n))...)
	}
	for n := range min(comparedObjects, c.dataset.owned()) {
		all = append(all, updateAllocation(c.dataset, n).read(), setAggregates(c.dataset, n).read())
	}
	if err := c.compare(all...); err != nil {
		return fmt.Errorf("after the measurements: %w", harness.FirstCause(ctx, err))
	}
	return nil
}

// read returns the request that reads the object which the request changes.
func (r request) read() request { return request{method: "GET", path: r.path} }

// compare sends requests to both servers and returns an error if the answers differ.
func (c answerCheck) compare(requests ...request) error {
	for _, r := range requests {
		var answers [2]string
		for i, p := range c.peers {
			answer, err := p.answer(r)
			if err != nil {
				return err
			}
			answers[i] = canonical(answer)
		}
		if answers[0] != answers[1] {
			return differ(r, c.peers, answers)
		}
	}
	return nil
}

// compareCandidates compares the answers to a request for some of the candidates. Both servers must return
// the same number of candidates, and each candidate and each summary of a provider must also occur in the
// answer to the request for all candidates, which compare checks.
func (c answerCheck) compareCandidates(limited request) error {
	all := candidates("")(c.dataset, 0)
	if err := c.compare(all); err != nil {
		return err
	}
	var counts [2]string
	for i, p := range c.peers {
		complete, err := p.answer(all)
		if err != nil {
			return err
		}
		some, err := p.answer(limited)
		if err != nil {
			return err
		}
		counts[i] = fmt.Sprintf("%d candidates, %d summaries", len(parts(some, "allocation_requests")),
			len(parts(some, "provider_summaries")))
		for _, key := range []string{"allocation_requests", "provider_summaries"} {
			known := parts(complete, key)
			for part := range parts(some, key) {
				if !known[part] {
					return fmt.Errorf("%s: %s: not among all candidates: %s", p.name, limited, part)
				}
			}
		}
	}
	if counts[0] != counts[1] {
		return differ(limited, c.peers, counts)
	}
	return nil
}

func differ(r request, peers [2]*peer, answers [2]string) error {
	const excerpt = 2000
	at := 0
	for at < min(len(answers[0]), len(answers[1])) && answers[0][at] == answers[1][at] {
		at++
	}
	var b strings.Builder
	for i, p := range peers {
		from := max(0, at-excerpt/2)
		fmt.Fprintf(&b, "\n%s: %s", p.name, answers[i][from:min(len(answers[i]), from+excerpt)])
	}
	return fmt.Errorf("the answers to %s differ:%s", r, &b)
}

// answer sends a request and decodes the answer. It removes the prefix of the server from the links.
func (p *peer) answer(r request) (any, error) {
	body, err := p.send(0, r)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", p.name, r, err)
	}
	return withoutPrefix(value, p.prefix), nil
}

func withoutPrefix(value any, prefix string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withoutPrefix(v[key], prefix)
		}
	case []any:
		for i := range v {
			v[i] = withoutPrefix(v[i], prefix)
		}
	case string:
		if strings.HasPrefix(v, prefix+"/") {
			return strings.TrimPrefix(v, prefix)
		}
	}
	return value
}

// canonical encodes a JSON value. Values that differ only in the order of lists have the same encoding,
// because Placement's lists have no order.
func canonical(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var all []string
		for key, of := range v {
			all = append(all, fmt.Sprintf("%q:%s", key, canonical(of)))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ",") + "}"
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, canonical(one))
		}
		slices.Sort(all)
		return "[" + strings.Join(all, ",") + "]"
	default:
		return fmt.Sprintf("%T:%#v", v, v) // a json.Number and a string look the same without their types
	}
}

// parts returns the canonical encodings of the parts of a list or an object in an answer.
func parts(answer any, key string) map[string]bool {
	all := map[string]bool{}
	whole, _ := answer.(map[string]any)
	switch v := whole[key].(type) {
	case map[string]any:
		for name, one := range v {
			all[name+" "+canonical(one)] = true
		}
	case []any:
		for _, one := range v {
			all[canonical(one)] = true
		}
	}
	return all
}
