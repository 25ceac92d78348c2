package server

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestCommand_NamesWrongArgument(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-x":         "-x; see worker -h",
		"now":        `unexpected argument "now"`,
		"-roles=all": `-roles all: unknown role "all"`,
		"":           "BERTH_DATABASE_URL is not set",
	} {
		err := run(t.Context(), strings.Fields(line), nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf(
				"command line `worker %s`: got error %v, want one that contains the text in the test case",
				line,
				err,
			)
		}
	}
}

func TestCommand_VersionNamesBuildAndSchema(t *testing.T) {
	t.Parallel()
	var out strings.Builder

	err := run(t.Context(), []string{"--version"}, nil, &out, io.Discard)

	if want := regexp.MustCompile(`^worker \S+\ncommit \S+ of \S+\nbuilt with go\S+ \S+\nschema \d+, or newer if`); err != nil ||
		!want.MatchString(out.String()) {
		t.Errorf("worker --version: got %q, error %v; want a text that matches %s", out.String(), err, want)
	}
}

func TestCommand_ErrorsHideTheUsersOfURLs(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{
		1: &url.Error{Op: "Get", URL: "http://ann:hunter2@host.example/x", Err: errors.New("refused")},
		2: fmt.Errorf("%w: http://ann:hunter2@host.example/x: refused", errUsage),
	} {
		var out strings.Builder
		code := reportError(&out, err)
		if text := out.String(); code != want || strings.Contains(text, "ann") ||
			strings.Contains(text, "hunter2") ||
			!strings.Contains(text, "host.example/x") {
			t.Errorf(
				"error %v at the end of a process: got exit code %d and %q, want exit code %d and the URL without the user",
				err, code, text, want,
			)
		}
	}
}
