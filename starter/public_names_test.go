package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth/starter/cli"
)

var update = flag.Bool("update", false, "write the commands and flags into testdata")

// publicNamesFile lists the commands of starter with their flags, one a line.
const publicNamesFile = "testdata/public_names.list"

// A command or flag in publicNamesFile that has been released never changes and never goes. A new one is
// added with `go test ./starter -run PublicNames -update`.
func TestPublicNames_AreFrozen(t *testing.T) {
	t.Parallel()
	var names []string
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		names = append(names, c.CommandPath())
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { names = append(names, c.CommandPath()+" --"+f.Name) })
		for _, child := range c.Commands() {
			add(child)
		}
	}
	settings, err := cli.ReadSettings(nil)
	add(commandTree().Root(&cli.Session{Settings: &settings, SettingsError: err}))
	slices.Sort(names)
	got := strings.Join(names, "\n") + "\n"
	if *update {
		if err := os.WriteFile(publicNamesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(publicNamesFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf(
			"commands and flags (-frozen +now): %s\na released name must stay; add a new one with -update",
			d,
		)
	}
}
