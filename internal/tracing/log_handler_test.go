package tracing_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/tracing"
)

func TestLogHandler_AddsIDsOfRequestAndTrace(t *testing.T) {
	t.Parallel()
	const id, global = "req-11111111-1111-4111-8111-111111111111", "req-22222222-2222-4222-8222-222222222222"
	for _, c := range []struct {
		name        string
		ids         tracing.RequestIDs
		traceparent string
		want        map[string]any
	}{
		{"outside a request", tracing.RequestIDs{}, "", map[string]any{}},
		{"in a request", tracing.RequestIDs{ID: id, Global: global}, "", map[string]any{"request_id": id, "global_request_id": global}},
		{"in a trace", tracing.RequestIDs{ID: id}, sampled,
			map[string]any{"request_id": id, "trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			log := slog.New(tracing.NewLogHandler(slog.NewJSONHandler(&b, nil))).With("part", "relay")
			log.InfoContext(
				tracing.WithTraceparent(tracing.WithRequestIDs(t.Context(), c.ids), c.traceparent),
				"hello",
			)
			got := map[string]any{}
			if err := json.Unmarshal(b.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			delete(got, "time")
			c.want["level"], c.want["msg"], c.want["part"] = "INFO", "hello", "relay"
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("log message (-want +got):\n%s", d)
			}
		})
	}
}

func TestValidRequestID_OnlyOpenStacksForm(t *testing.T) {
	t.Parallel()
	const valid = "req-11111111-1111-4111-8111-111111111111"
	for text, want := range map[string]string{
		valid:                                  valid,
		"":                                     "",
		"req-1":                                "",
		valid + "\n":                           "",
		"x" + valid:                            "",
		"11111111-1111-4111-8111-111111111111": "",
	} {
		if got := tracing.ValidRequestID(text); got != want {
			t.Errorf("ValidRequestID(%q): got %q, want %q", text, got, want)
		}
	}
}
