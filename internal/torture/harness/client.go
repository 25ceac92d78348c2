package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	"berth/internal/server/servertest"
)

// randomClient sends requests to a random API process of a deployment.
type randomClient struct {
	deployment *RandomDeployment
	ledger     *ledger
	random     *rand.Rand
	token      string
	http       *http.Client
}

func (d *RandomDeployment) newClient(l *ledger, seed, number uint64) *randomClient {
	return &randomClient{
		deployment: d,
		ledger:     l,
		random:     rand.New(rand.NewPCG(seed, 100+number)),
		token:      "admin",
		http: &http.Client{
			Transport: &http.Transport{MaxIdleConnsPerHost: 4},
			Timeout:   20 * time.Second,
		},
	}
}

// verdict says what a client knows about the effect of its request.
type verdict int

const (
	// no answer, or a server error: the request has taken effect, will take effect later, or will never take
	// effect
	unknown      verdict = iota
	acknowledged         // 2xx
	refused              // 4xx: no effect
)

type answer struct {
	verdict verdict
	status  int
	// seconds after which the client may send the request again, as the header Retry-After says; may be empty
	retryAfter string
	body       servertest.Object
}

var errAnswerLost = errors.New("the answer was lost by the test")

// send sends a request. If `revision` is not 0, berth must refuse the request unless the object has this
// revision.
func (c *randomClient) send(ctx context.Context, method, path string, body any, revision int64) answer {
	a, err := c.exchange(ctx, method, path, body, revision)
	switch {
	case err != nil && errors.Is(err, syscall.ECONNREFUSED):
		a.verdict = refused // nothing was sent
	case err != nil || a.status >= http.StatusInternalServerError:
		a.verdict = unknown
	case a.status >= http.StatusBadRequest:
		a.verdict = refused
	default:
		a.verdict = acknowledged
	}
	if a.status >= http.StatusInternalServerError &&
		(a.status != http.StatusServiceUnavailable || a.retryAfter == "") {
		c.ledger.mu.Lock()
		c.ledger.serverErrors = append(
			c.ledger.serverErrors,
			fmt.Sprintf("%s %s: %d %v", method, path, a.status, a.body),
		)
		c.ledger.mu.Unlock()
	}
	if method != http.MethodGet && c.token == "admin" {
		c.ledger.mu.Lock()
		switch a.verdict {
		case unknown:
			c.ledger.unanswered++
		case refused:
			c.ledger.refused++
		}
		c.ledger.mu.Unlock()
	}
	return a
}

func (c *randomClient) exchange(
	ctx context.Context,
	method, path string,
	body any,
	revision int64,
) (answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	lose, leave := c.deployment.clientFault.hits(), c.deployment.clientFault.hits()
	if leave { // the client disconnects early
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.IntN(30))*time.Millisecond)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, method,
		pick(c.random, c.deployment.urls("api"))+path, bytes.NewReader(raw))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("X-Auth-Token", c.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("OpenStack-API-Version", "placement 1.28")
	if revision != 0 {
		r.Header.Set("If-Match", fmt.Sprintf("revision_number=%d", revision))
	}
	sent := time.Now()
	res, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode < http.StatusBadRequest {
		c.deployment.samples.addLatency(time.Since(sent))
	}
	a := answer{status: res.StatusCode, retryAfter: res.Header.Get("Retry-After")}
	if err = json.NewDecoder(res.Body).Decode(&a.body); res.StatusCode == http.StatusNoContent ||
		res.StatusCode >= http.StatusBadRequest {
		err = nil
	}
	if lose {
		return answer{}, errAnswerLost
	}
	return a, err
}

// wait pauses for a random time of at most `longest`.
func (c *randomClient) wait(ctx context.Context, longest time.Duration) {
	pause(ctx, time.Duration(c.random.Int64N(int64(longest))))
}

// sendUntilAcknowledged sends a request until berth acknowledges it or the context ends.
func (c *randomClient) sendUntilAcknowledged(
	ctx context.Context,
	method, path string,
	body any,
) servertest.Object {
	for {
		a := c.send(ctx, method, path, body, 0)
		if a.verdict == acknowledged {
			return a.body
		}
		if ctx.Err() != nil {
			return nil
		}
		pause(ctx, 200*time.Millisecond)
	}
}
