package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// HTTP sends reports to the HTTP gateway of berth.
type HTTP struct {
	URL    string // URL of berth's API, such as https://berth:8080
	Token  string // token of the agent's host, or of a service
	Client *http.Client
}

const (
	maxAnswer = 1 << 20          // bytes of an answer that Send reads
	maxPause  = 10 * time.Minute // longest pause that an answer can ask for
)

// Send implements Transport. berth has stored the report when Send returns without an error. Send follows no
// redirect, because package net/http would send the token to the other host, too.
func (h *HTTP) Send(ctx context.Context, port string, r Report) (Result, error) {
	r.ExpiresAt, r.Signature = 0, "" // the token authenticates the agent
	body, err := json.Marshal(map[string]any{"reports": []any{struct {
		Port string `json:"port"`
		Report
	}{port, r}}})
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimRight(h.URL, "/")+"/agent/v1/reports", bytes.NewReader(body))
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", h.Token)
	client := http.Client{}
	if h.Client != nil {
		client = *h.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(request)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if answer.StatusCode != http.StatusOK {
		return Result{}, statusError(answer, text)
	}
	return decodeVerdict(text)
}

func decodeVerdict(text []byte) (Result, error) {
	var decoded struct {
		Verdicts []struct {
			Result    string   `json:"result"`
			Status    string   `json:"status"`
			Remaining []string `json:"remaining"`
			Stale     bool     `json:"stale"`
		} `json:"verdicts"`
	}
	if err := json.Unmarshal(text, &decoded); err != nil || len(decoded.Verdicts) != 1 {
		return Result{}, fmt.Errorf("%w: the answer does not come from berth's API for agents; check the URL", ErrUnavailable)
	}
	v := decoded.Verdicts[0]
	switch {
	case v.Result == "gone":
		return Result{}, ErrUnknown
	case v.Stale:
		return Result{}, ErrStale
	}
	return Result{Outcome: Outcome(v.Result), Status: v.Status, Remaining: v.Remaining}, nil
}

// statusError returns the error for an answer without a result.
func statusError(answer *http.Response, text []byte) error {
	var decoded struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	message := answer.Status
	if json.Unmarshal(text, &decoded) == nil && decoded.Error.Message != "" {
		message += ": " + decoded.Error.Message
	}
	switch code := answer.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		pause := time.Duration(min(max(seconds, 0), int(maxPause/time.Second))) * time.Second
		return &pauseError{text: ErrUnavailable.Error() + ": " + message, pause: pause}
	default:
		return fmt.Errorf("%w: %s", ErrRefused, message)
	}
}
