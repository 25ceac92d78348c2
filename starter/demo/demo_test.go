package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"berth/starter/cli"
)

func TestPrintStep_BreaksBetweenWordsAt80Columns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demonstration{writer: &out, started: time.Now()}
	const what = "consumer df92af3b-95de-45da-9585-aaf3d9efa585 has 1 VCPU at generation 1; two writers read this generation"
	d.printStep("PUT /placement/allocations/{consumer}", "%s", what)

	var words []string
	for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		text, indented := strings.CutPrefix(line, strings.Repeat(" ", 13))
		if cli.Width(line) > 80 || indented != (i > 0) {
			t.Errorf("got the line %q, want at most 80 columns, below the text of the first line", line)
		}
		if i == 0 {
			_, text, _ = strings.Cut(line, " s  ")
		}
		words = append(words, text)
	}
	want := what + "  ← PUT /placement/allocations/{consumer}"
	if got := strings.Join(words, " "); len(words) < 2 || strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got the words %q, want %q", got, want)
	}
}

func TestRunLinks_ACommandHasALineOfItsOwn(t *testing.T) {
	t.Parallel()
	settings, err := cli.ReadSettings([]string{"BERTH_DATA=" + t.TempDir(), "TEMPORAL_UI=http://ui"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &demonstration{Session: &cli.Session{Settings: &settings}, writer: &out, port: createdPort{id: "p", name: "web"}, entries: []string{"7"}}
	if err := d.runLinks(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"    # why the port has its status\n    temporal workflow query -w port/p --type why\n",
		"    # journal entry 7\n    http://ui/namespaces//workflows/journal%2F7\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q", &out, want)
		}
	}
}
