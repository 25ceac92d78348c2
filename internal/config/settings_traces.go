package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Traces has the settings of OpenTelemetry traces.
type Traces struct {
	Disabled bool
	Exporter string // otlp or none
	Protocol string
	BaseURL  string            // OTLP endpoint of all signals
	URL      string            // OTLP endpoint of traces only
	Headers  map[string]string // of the requests to the endpoint
	Sampler  string
	// share of the sampled traces, for the samplers traceidratio and parentbased_traceidratio
	Ratio   float64
	Service string
}

// samplers are the values of OTEL_TRACES_SAMPLER.
var samplers = []string{
	"always_on",
	"always_off",
	"traceidratio",
	"parentbased_always_on",
	"parentbased_always_off",
	"parentbased_traceidratio",
}

// Endpoint returns the URL to which the process sends its traces; empty: it sends none.
func (t Traces) Endpoint() string {
	switch {
	case t.Disabled || t.Exporter == "none":
		return ""
	case t.URL != "":
		return t.URL
	case t.BaseURL != "":
		return strings.TrimRight(t.BaseURL, "/") + "/v1/traces"
	default:
		return ""
	}
}

// traceSettings are OpenTelemetry's standard variables.
var traceSettings = Section{"Traces (OpenTelemetry)", []Setting{
	{
		Name:        "OTEL_EXPORTER_OTLP_ENDPOINT",
		Unit:        "URL",
		Description: "Receiver of traces, for example http://collector:4318. berth sends OTLP over HTTP to the path /v1/traces below this URL. Without an endpoint, berth makes no traces.",
		set:         httpURL(func(c *Config) *string { return &c.Traces.BaseURL }),
	},
	{
		Name:        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		Unit:        "URL",
		Description: "Complete URL of the receiver of traces; it overrides OTEL_EXPORTER_OTLP_ENDPOINT.",
		set:         httpURL(func(c *Config) *string { return &c.Traces.URL }),
	},
	{
		Name:        "OTEL_EXPORTER_OTLP_HEADERS",
		Unit:        "list of key=value",
		Secret:      true,
		Description: "Headers of the requests to the receiver, for example a token. The values are URL-encoded.",
		set:         traceHeaders,
	},
	{
		Name:        "OTEL_EXPORTER_OTLP_PROTOCOL",
		Default:     "http/protobuf",
		Unit:        "http/protobuf",
		Description: "Protocol of the receiver. berth supports only http/protobuf.",
		set:         oneOf(func(c *Config) *string { return &c.Traces.Protocol }, "http/protobuf"),
	},
	{
		Name:        "OTEL_TRACES_EXPORTER",
		Default:     "otlp",
		Unit:        "otlp or none",
		Description: "The value none turns traces off.",
		set:         oneOf(func(c *Config) *string { return &c.Traces.Exporter }, "otlp", "none"),
	},
	{
		Name:        "OTEL_SDK_DISABLED",
		Default:     "false",
		Unit:        "true or false",
		Description: "The value true turns traces off.",
		set:         sdkDisabled,
	},
	{
		Name:        "OTEL_TRACES_SAMPLER",
		Default:     "parentbased_always_on",
		Unit:        "name of a sampler",
		Description: "Sampler: always_on, always_off, traceidratio, or one of these with the prefix parentbased_, which follows the decision of the caller if the request has a traceparent. A busy deployment uses parentbased_traceidratio.",
		set:         oneOf(func(c *Config) *string { return &c.Traces.Sampler }, samplers...),
	},
	{
		Name:        "OTEL_TRACES_SAMPLER_ARG",
		Default:     "1",
		Unit:        "number from 0 to 1",
		Description: "Share of the traces that the samplers traceidratio and parentbased_traceidratio select.",
		set:         share(func(c *Config) *float64 { return &c.Traces.Ratio }),
	},
	{
		Name:        "OTEL_SERVICE_NAME",
		Default:     "berth",
		Unit:        "text",
		Description: "Name of the service in each span.",
		set:         text(func(c *Config) *string { return &c.Traces.Service }),
	},
}}

// oneOf parses a value that must be one of the given ones.
func oneOf(field func(*Config) *string, allowed ...string) setter {
	return func(c *Config, s string) error {
		if *field(c) = s; !slices.Contains(allowed, s) {
			return fmt.Errorf("must be one of %s", strings.Join(allowed, ", "))
		}
		return nil
	}
}

func sdkDisabled(c *Config, s string) error {
	// as OpenTelemetry specifies, every other value means false
	c.Traces.Disabled = strings.EqualFold(s, "true")
	return nil
}

// traceHeaders parses a list of key=value, separated by commas, whose values are URL-encoded.
func traceHeaders(c *Config, s string) error {
	if s == "" {
		return nil
	}
	c.Traces.Headers = map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return errors.New("must be a list of key=value, separated by commas")
		}
		c.Traces.Headers[key] = value
	}
	return nil
}
