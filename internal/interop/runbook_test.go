package interop

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"berth/internal/server/servertest"
)

// runbookRemedy matches the command with which a runbook ends the cause of its alert.
var runbookRemedy = regexp.MustCompile("\\b[Rr]un `(starter [^`]+)`")

// runbook returns the commands in the section of a runbook that show the cause, and the command that ends the
// cause, if there is one. An alert links to the section as page#section.
func runbook(t *testing.T, link string) (commands []string, remedy string) {
	t.Helper()
	page, section, _ := strings.Cut(link, "#")
	for text := range strings.SplitSeq(readPage(t, page), "\n## ") {
		title, body, _ := strings.Cut(text, "\n")
		if strings.ToLower(title) != section {
			continue
		}
		if found := runbookRemedy.FindStringSubmatch(body); found != nil {
			remedy = found[1]
		}
		_, block, _ := strings.Cut(body, "```sh\n")
		block, _, _ = strings.Cut(block, "```")
		return strings.Split(strings.TrimSpace(block), "\n"), remedy
	}
	t.Fatalf("the runbook %s does not exist", link)
	return nil, ""
}

// starter runs a command against the API with the given URL, and returns what the command prints.
func starter(s *servertest.Deployment, url, command string) string {
	s.Helper()
	words := strings.Fields(command)
	c := exec.CommandContext(s.Context(), servertest.Program(s.T, words[0]), words[1:]...)
	c.Env = append(append(os.Environ(), s.Settings...), "BERTH_URL="+url)
	out, _ := c.CombinedOutput() // starter doctor ends with the exit code of the failed check
	return string(out)
}

// checkRunbook runs the commands of an alert's runbook against the API with the given URL until their output
// matches each of the expressions. It returns the command that ends the cause.
func checkRunbook(s *servertest.Deployment, url string, fired alert, want ...string) (remedy string) {
	s.Helper()
	commands, remedy := runbook(s.T, fired.Annotations["runbook_url"])
	s.Await("the commands of the runbook of "+fired.Labels["alertname"]+" name the cause", func() string {
		output := ""
		for _, command := range commands {
			output += "$ " + command + "\n" + starter(s, url, command)
		}
		for _, expression := range want {
			if !regexp.MustCompile(expression).MatchString(output) {
				return fmt.Sprintf("output that matches %q in\n%s", expression, output)
			}
		}
		return ""
	})
	return remedy
}
