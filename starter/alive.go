package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const probeHelp = "For health checks of containers, which have no other client inside. The process is found as BERTH_LISTEN says.\n" +
	"A process that lives but is not ready needs no restart: it waits for a neighbour."

// probeProcess asks the process at --url for its health.
func probeProcess(f *pflag.FlagSet) action {
	ready := f.Bool("ready", false, "ask whether it is ready, not only whether it lives")
	return func(ctx context.Context, s *session, _ []string) error {
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		var answer object
		if err := s.api.do(ctx, "GET", path, nil, &answer); err != nil {
			return err
		}
		return s.out.say(answer, "ok")
	}
}

// unready lists which conditions of readiness are not met.
func unready(checks map[string]string) string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if checks[name] != "ok" {
			wrong = append(wrong, name+": "+checks[name])
		}
	}
	return "not ready: " + strings.Join(wrong, "; ")
}
