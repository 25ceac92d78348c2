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

// told is one command of the story, at the microversions 1.from to 1.until (0: the newest).
type told struct {
	from, until int
	line        string
	// want is the output as JSON; empty for a command that has none. "error: " introduces a part of the complaint of a command
	// that fails, and "has: " a row among others.
	want string
}

// newest is the last microversion of all.
const newest = 39

// columns tells from which microversion on the client shows a column.
var columns = map[string]int{"root_provider_uuid": 14, "parent_provider_uuid": 14, "project_id": 12, "user_id": 12, "consumer_type": 38, "traits": 17}

// telling is the story at one microversion, with names of its own.
type telling struct {
	*testing.T
	version string // as the client is told
	minor   int    // as which it behaves
	names   *strings.Replacer
	run     func(line string) (code int, stdout, stderr string)
}

func newTelling(t *testing.T, version string) telling {
	n := telling{T: t, version: version, minor: 29} // "1" means the newest of those that the client knows without a gap
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

	turns := turnsOf(storyOfPlacement, commands)
	for command, at := range turns {
		if len(at) == 0 {
			t.Errorf("the story does not tell of %q", command)
		}
	}

	for _, version := range versions {
		n := newTelling(t, version)
		c.session("--os-placement-api-version "+version, func(run func(string) (int, string, string)) {
			n.run = run
			for _, s := range storyOfPlacement {
				if s.moves() || turns[commandOf(s.line, commands)][n.minor] {
					n.tell(s)
				}
			}
		})
	}

	if left := s.Rows(`select name from provider union all select uuid from consumer`); len(left) > 0 {
		t.Errorf("at its end the story leaves %v", left)
	}
}

// moves tells whether what follows builds on the line, so that it is told at every microversion. The others are told where something
// about their command changes.
func (s told) moves() bool {
	return !strings.HasPrefix(s.want, "error: ") && !strings.Contains(s.line, " list") && !strings.Contains(s.line, " show")
}

// turnsOf are the microversions at which a command takes, shows or does something else than at the one before.
func turnsOf(story []told, commands []string) map[string]map[int]bool {
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

// commandOf is the longest of the commands with which the line begins.
func commandOf(line string, commands []string) (found string) {
	for _, command := range commands {
		if strings.HasPrefix(line+" ", command+" ") && len(command) > len(found) {
			found = command
		}
	}
	return found
}

func (t telling) tell(s told) {
	t.Helper()
	if t.minor < s.from || s.until != 0 && t.minor > s.until {
		return
	}
	if err := t.step(t.names.Replace(s.line), t.names.Replace(s.want)); err != nil {
		t.Errorf("at %s, %s: %v", t.version, t.names.Replace(s.line), err)
	}
}

func (t telling) step(line, want string) error {
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
		return fmt.Errorf("want %q, got code %d and %q", want, code, stderr)
	case want == "" && strings.TrimSpace(stdout) == "":
		return nil
	case want == "":
		return fmt.Errorf("unexpected output %q", stdout)
	}
	var wanted, got any
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		return fmt.Errorf("%w: %s", err, stdout)
	}
	if err := json.Unmarshal([]byte(row), &wanted); err != nil {
		return fmt.Errorf("%w: %s", err, row)
	}
	t.tidy(wanted)
	t.tidy(got)
	if among {
		if rows, _ := got.([]any); !slices.ContainsFunc(rows, func(r any) bool { return cmp.Equal(wanted, r) }) {
			return fmt.Errorf("%s is not in %s", row, stdout)
		}
		return nil
	}
	if d := cmp.Diff(wanted, got, inAnyOrder); d != "" {
		return fmt.Errorf("(-want +got):\n%s", d)
	}
	return nil
}

// inAnyOrder says that the order of rows means nothing.
var inAnyOrder = cmpopts.SortSlices(func(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) < string(y)
})

// tidy takes away the columns that the client does not show yet, and sorts what it shows with commas in between.
func (t telling) tidy(rows any) {
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
