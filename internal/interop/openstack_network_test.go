package interop

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// identifier matches an ID in the output of the openstack client.
var identifier = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// blanks matches the blanks at the end of a line.
var blanks = regexp.MustCompile(`(?m)[ \t]+$`)

func TestOpenStackClient_Networks(t *testing.T) {
	t.Parallel()
	s := servertest.NewDeployment(t, storetest.URL(t))
	api := s.StartWorker("api")
	c := newStockClient(t, api.URL+"/networking")
	api.RegisterAgents()
	agents := s.Rows(`select id::text from agent order by agent_type`)
	fill := strings.NewReplacer("{dhcp}", agents[0], "{l2}", agents[1])

	commands := c.commands("openstack.network.v2")
	if !slices.Contains(commands, "network trunk list") {
		// older clients have the trunk commands in another entry point group
		for _, command := range c.commands("openstack.neutronclient.v2") {
			if strings.HasPrefix(command, "network trunk ") ||
				strings.HasPrefix(command, "network subport ") {
				commands = append(commands, command)
			}
		}
	}
	told := map[string]bool{}
	for _, said := range networkCommands {
		told[commandOf(said.line, commands)] = true
	}
	for _, command := range commands {
		if !told[command] && !excused(command) {
			t.Errorf(
				"networkCommands does not use the client's command %q, and inapplicablePrefixes has no reason; want one of both",
				command,
			)
		}
	}

	commands = append(commands, c.commands("openstack.common")...)
	c.session("", func(run func(string) (int, string, string)) {
		for _, said := range networkCommands {
			if commandOf(said.line, commands) == "" {
				continue // this client is too old for the command
			}
			if strings.Contains(said.line, " --host ") {
				api.RegisterAgents() // binding a port needs live agents
			}
			line := fill.Replace(said.line)
			if strings.Contains(line, "{rule}") {
				line = strings.ReplaceAll(line, "{rule}",
					s.Rows(`select id::text from security_group_rule where protocol = 'icmp'`)[0])
			}
			if problem := said.differs(run(line)); problem != "" {
				t.Errorf("run the command openstack %s: %s", said.line, problem)
			}
		}
		for _, line := range unsupportedCommands {
			rest := commandCase{line, "error: The resource could not be found."}
			if commandOf(line, commands) == "" {
				continue
			}
			if problem := rest.differs(run(line)); problem != "" {
				t.Errorf("run the command openstack %s for a resource that berth does not support: %s",
					line, problem)
			}
		}
	})
}

func excused(command string) bool {
	for prefix := range inapplicablePrefixes {
		if strings.HasPrefix(command+" ", prefix+" ") {
			return true
		}
	}
	return false
}

// differs returns how the client's output differs from the expected output of the commandCase, or "" if there
// is no difference.
func (s commandCase) differs(code int, stdout, stderr string) string {
	complaint, fails := strings.CutPrefix(s.want, "error: ")
	line, among := strings.CutPrefix(s.want, "has: ")
	got := strings.ReplaceAll(
		strings.TrimSpace(blanks.ReplaceAllString(identifier.ReplaceAllString(stdout, "#"), "")),
		"\n",
		"|",
	)
	switch {
	case fails && code != 0 && strings.Contains(stderr, complaint), !fails && code == 0 && got == s.want,
		among && code == 0 && strings.Contains("|"+got+"|", "|"+line+"|"):
		return ""
	default:
		return fmt.Sprintf("want %q, got code %d and %q %s", s.want, code, got, stderr)
	}
}
