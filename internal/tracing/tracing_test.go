package tracing_test

import (
	"context"
	"net/http"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"berth/internal/tracing"
)

const (
	sampled    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	notSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

func TestTraceparent_OnlyOfSampledTraces(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		sampled:            sampled,
		notSampled:         "",
		"":                 "",
		"00-zz-01":         "",
		sampled + "-extra": "",
	} {
		if got := tracing.Traceparent(tracing.WithTraceparent(t.Context(), given)); got != want {
			t.Errorf("traceparent of a context with %q: got %q, want %q", given, got, want)
		}
	}
}

func TestRequest_SampledAsItsParentOrTheRatioSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sampler     string
		ratio       float64
		traceparent string
		want        bool
	}{
		{"parentbased_traceidratio", 0, sampled, true},
		{"parentbased_traceidratio", 1, notSampled, false},
		{"parentbased_traceidratio", 0, "", false},
		{"parentbased_traceidratio", 1, "", true},
		{"parentbased_always_off", 1, "", false},
		{"traceidratio", 0, sampled, false},
		{"always_off", 1, sampled, false},
		{"always_on", 0, notSampled, true},
		{"parentbased_always_on", 0, "", true},
	} {
		traces, err := tracing.Open(
			tracing.Options{Endpoint: "http://127.0.0.1:1/v1/traces", Sampler: c.sampler, Ratio: c.ratio},
		)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if c.traceparent != "" {
			r.Header.Set("Traceparent", c.traceparent)
		}
		_, span := traces.StartRequest(r)
		if got := span.SpanContext().IsSampled(); got != c.want {
			t.Errorf("sampler %s with ratio %v and traceparent %q: got sampled=%v, want %v",
				c.sampler, c.ratio, c.traceparent, got, c.want)
		}
	}
}

// Without a sampled trace, the code on the path of each request allocates nothing. The test does not run in
// parallel, because it counts allocations.
func TestSpans_CostNothingWithoutSampledTrace(t *testing.T) {
	ctx := t.Context()
	off := &tracing.Traces{}
	transport := tracing.Transport(answer{}, func(*http.Request) string { return "nova" })
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://nova/", nil)
	for what, f := range map[string]func(){
		"Traceparent":     func() { _ = tracing.Traceparent(ctx) },
		"WithTraceparent": func() { _ = tracing.WithTraceparent(ctx, "") },
		"Start":           func() { _, span := tracing.Start(ctx, "x", trace.SpanKindClient); tracing.End(span, nil) },
		"Transport":       func() { _, _ = transport.RoundTrip(r) },
		"On":              func() { _ = off.On() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s without a trace: got %v allocations, want 0", what, n)
		}
	}
}

type answer struct{}

func (answer) RoundTrip(*http.Request) (*http.Response, error) { return nil, context.Canceled }

func TestSpanIDOf_SameTextsGiveSameID(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), tracing.WithIDs())
	id := tracing.SpanIDOf("run", "signal")
	_, span := provider.Tracer("").Start(tracing.WithSpanID(t.Context(), id), "x")
	span.End()
	if got := spans.GetSpans()[0].SpanContext.SpanID(); got != tracing.SpanIDOf("run", "signal") ||
		got == tracing.SpanIDOf("runs", "ignal") {
		t.Errorf("ID of the span: got %s, want %s", got, id)
	}
}
