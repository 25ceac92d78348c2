package server

import (
	"io"
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
			t.Errorf("command line `worker %s`: got error %v, want one that contains the text in the test case", line, err)
		}
	}
}
