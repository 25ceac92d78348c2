package diagnosis

import (
	"errors"
	"testing"

	"berth/starter/cli"
)

func TestDoctor_WorkersGetTasksOnlyOfTheirVersion(t *testing.T) {
	t.Parallel()
	const setCurrent = "temporal worker deployment set-current-version --namespace ns --deployment-name berth "
	none, before, after := workerVersion{}, workerVersion{"berth", "1"}, workerVersion{"berth", "2"}
	polling := func(versions ...workerVersion) []workerVersion { return versions }
	for name, c := range map[string]struct {
		routing                versionRouting
		state, found, commands string
	}{
		"no worker":                    {versionRouting{current: before}, "ok", "", ""},
		"unversioned":                  {versionRouting{polling: polling(none)}, "ok", "", ""},
		"current":                      {versionRouting{polling: polling(before), current: before}, "ok", "", ""},
		"trial of a new version":       {versionRouting{polling: polling(before, after), current: before, ramping: after}, "ok", "", ""},
		"new version before its trial": {versionRouting{polling: polling(before, after), current: before}, "ok", "", ""},
		"trial of the first version":   {versionRouting{polling: polling(none, after), ramping: after}, "ok", "", ""},
		"no current version": {
			versionRouting{polling: polling(after)}, "FAIL",
			"Temporal gives the tasks of ports to unversioned workers, but the workers that poll are berth:2",
			setCurrent + "--build-id 2",
		},
		"first version beside unversioned workers": {
			versionRouting{polling: polling(none, after)}, "WARN",
			"attention: workers get no tasks of ports, because their Worker Deployment has no current version: berth:2; `" + setCurrent +
				"--build-id 2` gives them the tasks", "",
		},
		"current version without workers": {
			versionRouting{polling: polling(none, after), current: before, ramping: after}, "FAIL",
			"Temporal gives the tasks of ports to berth:1 workers, but the workers that poll are unversioned, berth:2",
			setCurrent + "--unversioned or " + setCurrent + "--build-id 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.routing.check("ports", "ns")
			row, _ := resultRow("", "", err)
			var failure *cli.Error
			commands := ""
			if errors.As(err, &failure) {
				commands = failure.Next
			}
			if row["state"] != c.state || row["found"] != c.found || commands != c.commands {
				t.Errorf("check of %+v: got %v with the commands %q, want %s %q with the commands %q",
					c.routing, row, commands, c.state, c.found, c.commands)
			}
		})
	}
}
