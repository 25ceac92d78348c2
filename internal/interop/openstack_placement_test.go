package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// versionedCommand is a command that runs at the microversions 1.from to 1.until. If `until` is 0, the
// command runs at the microversions from 1.from up to the newest microversion.
type versionedCommand struct {
	from, until int
	line        string
	// `want` is the expected output as JSON, or empty for a command without output. If `want` has the prefix
	// "error: ", the command must fail with a message that contains the text after the prefix. If `want` has
	// the prefix "has: ", the output must contain a row that equals the JSON text after the prefix.
	want string
}

// newest is the newest microversion of the Placement API.
const newest = 39

// columns maps a column of the client's output to the first minor microversion at which the client shows the
// column.
var columns = map[string]int{
	"root_provider_uuid":   14,
	"parent_provider_uuid": 14,
	"project_id":           12,
	"user_id":              12,
	"consumer_type":        38,
	"traits":               17,
}

// placementClient runs the commands at one microversion of the Placement API, with names of objects that no
// other microversion uses.
type placementClient struct {
	*testing.T
	version string // value of the client's option --os-placement-api-version
	minor   int    // minor version that the client then uses
	names   *strings.Replacer
	run     func(line string) (code int, stdout, stderr string)
}

func newTelling(t *testing.T, version string) placementClient {
	// "1" means the newest of the consecutive versions that the client knows
	n := placementClient{
		T:       t,
		version: version,
		minor:   29,
	}
	if _, minor, ok := strings.Cut(version, "."); ok {
		n.minor, _ = strconv.Atoi(minor)
	}
	names := []string{"{v}", strings.ReplaceAll(version, ".", "_")}
	for _, name := range []string{"P", "Q", "C", "A", "B", "U", "V"} {
		names = append(names, "{"+name+"}", uuid.NewString())
	}
	owner := ""
	if n.minor >= 8 {
		owner = "--project-id prj_{v} --user-id usr_{v}"
	}
	if n.minor >= 38 {
		owner += " --consumer-type INSTANCE"
	}
	n.names = strings.NewReplacer(append(names, "{owner}", strings.ReplaceAll(owner, "{v}", names[1]))...)
	return n
}

func TestOpenStackClient_PlacementAtEveryMicroversion(t *testing.T) {
	t.Parallel()
	s := servertest.NewDeployment(t, storetest.URL(t))
	c := newStockClient(t, s.StartWorker("api").URL+"/placement")
	var versions []string
	c.ask("microversions", &versions)
	commands := c.commands("openstack.placement.v1")

	turns := versionsOfCommands(placementCommands, commands)
	for command, at := range turns {
		if len(at) == 0 {
			t.Errorf(
				"the table placementCommands does not use the client's command %q, want every command used",
				command,
			)
		}
	}

	for _, version := range versions {
		n := newTelling(t, version)
		c.session("--os-placement-api-version "+version, func(run func(string) (int, string, string)) {
			n.run = run
			for _, s := range placementCommands {
				if s.changesState() || turns[commandOf(s.line, commands)][n.minor] {
					n.runCommand(s)
				}
			}
		})
	}

	if left := s.Rows(`select name from provider union all select uuid from consumer`); len(left) > 0 {
		t.Errorf(
			"run placementCommands, which delete the objects that they create: got the remaining providers and consumers %v in the database, want none",
			left,
		)
	}
}

// changesState reports whether the command changes objects on which later commands depend. A command that
// changes objects runs at every microversion of its range; any other command runs only at the microversions
// that change the command.
func (s versionedCommand) changesState() bool {
	return !strings.HasPrefix(s.want, "error: ") && !strings.Contains(s.line, " list") &&
		!strings.Contains(s.line, " show")
}

// versionsOfCommands maps each command to the newest microversion, and to the microversions that change the
// options, the output or the effect of the command.
func versionsOfCommands(story []versionedCommand, commands []string) map[string]map[int]bool {
	turns := map[string]map[int]bool{}
	for _, command := range commands {
		turns[command] = map[int]bool{}
	}
	for _, s := range story {
		if at := turns[commandOf(s.line, commands)]; at != nil {
			at[s.from], at[s.until+1], at[newest] = true, true, true
			for column, from := range columns {
				at[from] = at[from] || strings.Contains(s.want, `"`+column+`"`)
			}
		}
	}
	return turns
}

// commandOf returns the longest of the client's commands with which a command line begins.
func commandOf(line string, commands []string) (found string) {
	for _, command := range commands {
		if strings.HasPrefix(line+" ", command+" ") && len(command) > len(found) {
			found = command
		}
	}
	return found
}

func (t placementClient) runCommand(s versionedCommand) {
	t.Helper()
	if t.minor < s.from || s.until != 0 && t.minor > s.until {
		return
	}
	if err := t.step(t.names.Replace(s.line), t.names.Replace(s.want)); err != nil {
		t.Errorf("run at microversion %s the command openstack %s: %v",
			t.version, t.names.Replace(s.line), err)
	}
}

func (t placementClient) step(line, want string) error {
	complaint, fails := strings.CutPrefix(want, "error: ")
	row, among := strings.CutPrefix(want, "has: ")
	if want != "" && !fails {
		line += " -f json"
	}
	code, stdout, stderr := t.run(line)
	switch {
	case fails && code == 1 && strings.Contains(stderr, complaint):
		return nil
	case fails || code != 0:
		return fmt.Errorf("want the result %q, got exit code %d and error output %q", want, code, stderr)
	case want == "" && strings.TrimSpace(stdout) == "":
		return nil
	case want == "":
		return fmt.Errorf("got the output %q, want no output", stdout)
	}
	var wanted, got any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		return fmt.Errorf("decode the output as JSON: %w: %s", err, stdout)
	}
	if err := json.Unmarshal([]byte(row), &wanted); err != nil {
		return fmt.Errorf("decode the expected output as JSON: %w: %s", err, row)
	}
	t.tidy(wanted)
	t.tidy(got)
	if among {
		rows, _ := got.([]any)
		if !slices.ContainsFunc(rows, func(r any) bool { return cmp.Equal(wanted, r) }) {
			return fmt.Errorf("want the row %s in the output, got %s", row, stdout)
		}
		return nil
	}
	if d := cmp.Diff(wanted, got, inAnyOrder); d != "" {
		return fmt.Errorf("output of the command differs (-want +got):\n%s", d)
	}
	return nil
}

// inAnyOrder is an option that makes cmp.Diff ignore the order of rows.
var inAnyOrder = cmpopts.SortSlices(func(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) < string(y)
})

// tidy removes the columns that the client does not show at the microversion of the placementClient, and
// sorts comma-separated values.
func (t placementClient) tidy(rows any) {
	switch rows := rows.(type) {
	case []any:
		for _, row := range rows {
			t.tidy(row)
		}
	case map[string]any:
		maps.DeleteFunc(rows, func(column string, _ any) bool { return t.minor < columns[column] })
		for _, column := range []string{"allocation", "inventory used/capacity", "traits"} {
			if list, ok := rows[column].(string); ok {
				rows[column] = slices.Sorted(strings.SplitSeq(list, ","))
			}
		}
	}
}
