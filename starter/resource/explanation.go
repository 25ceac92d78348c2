package resource

import (
	"fmt"
	"strings"

	"berth/starter/cli"
)

// PartySentence returns the API's sentence about one party (for example an agent) that an object waits for.
func PartySentence(p cli.Object) string {
	if sentence, _ := p["sentence"].(string); sentence != "" {
		return sentence
	}
	return fmt.Sprintf("it waits for %v", p["for"])
}

// WaitingParties returns the parties (agents, services or other objects) that an object waits for.
// WaitingParties takes the parties from the API's explanation of the object.
func WaitingParties(o cli.Object) []cli.Object {
	explanation, _ := o[cli.ExplanationKey].(cli.Object)
	all, _ := cli.Objects(explanation["waiting"])
	return all
}

// StatusReason returns the reason why a port is not ACTIVE if this reason is not an agent that the port waits
// for, for example that the port is administratively down.
func StatusReason(o cli.Object) string {
	explanation, _ := o[cli.ExplanationKey].(cli.Object)
	reason, _ := explanation["reason"].(string)
	return reason
}

// Blockers returns one line for each reason why an object does not have the status that it should reach, for
// example why a port is not ACTIVE.
func Blockers(o cli.Object) string {
	var lines []string
	if reason := StatusReason(o); reason != "" {
		lines = append(lines, cli.Sanitize(reason))
	}
	for _, p := range WaitingParties(o) {
		lines = append(lines, cli.Sanitize(PartySentence(p)))
	}
	if len(lines) == 0 {
		return cli.Sanitize(Sentence(o))
	}
	return strings.Join(lines, "\n  ")
}

// Sentence returns the API's explanation of an object's status, or an empty string if the object has no
// explanation.
func Sentence(o cli.Object) string {
	explanation, _ := o[cli.ExplanationKey].(cli.Object)
	sentence, _ := explanation["sentence"].(string)
	return sentence
}
