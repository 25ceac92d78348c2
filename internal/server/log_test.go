package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"berth/internal/config"
	"berth/internal/server"
	"berth/internal/tracing"
)

func TestLog_FormatFollowsTheSetting(t *testing.T) {
	t.Parallel()
	for _, format := range []string{config.LogText, config.LogJSON} {
		cfg, err := config.Load([]string{"BERTH_LOG_FORMAT=" + format})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		server.NewLogger(&b, cfg).
			WarnContext(tracing.WithRequestIDs(t.Context(), tracing.RequestIDs{ID: "req-1"}), "slow answer", "host", "cmp-1")
		got, want := b.String(), `level=WARN msg="slow answer" host=cmp-1 request_id=req-1`
		if format == config.LogText {
			if !strings.Contains(got, want) {
				t.Errorf("log: got %q, want it to contain %q", got, want)
			}
			continue
		}
		var object map[string]any
		if err := json.Unmarshal(b.Bytes(), &object); err != nil || object["host"] != "cmp-1" ||
			object["request_id"] != "req-1" {
			t.Errorf("log: got %q, %v; want one JSON object with host and request_id", got, err)
		}
	}
}

func TestLog_HidesTheUsersOfURLs(t *testing.T) {
	t.Parallel()
	const secret = "amqp://ann:hunter2@host.example/"
	for _, format := range []string{config.LogText, config.LogJSON} {
		cfg, err := config.Load([]string{"BERTH_LOG_FORMAT=" + format})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		log := server.NewLogger(&b, cfg).With("with", secret)
		log.Warn(
			"cannot reach "+secret, "text", secret, "error",
			&url.Error{Op: "Get", URL: secret, Err: errors.New("refused")},
			slog.Group("group", "text", secret),
		)
		if got := b.String(); strings.Contains(got, "//ann") || strings.Contains(got, "hunter2") ||
			strings.Count(got, "host.example") != 5 {
			t.Errorf("log with URLs: got %q, want five URLs without the user and the password", got)
		}
	}
}
