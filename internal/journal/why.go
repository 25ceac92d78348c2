package journal

import "fmt"

// Summary names an entry for people, in one line.
func Summary(e Entry) string {
	name := e.Name
	if name == "" {
		name = e.Object.ID
	}
	return fmt.Sprintf("%s %s %s", e.Operation, e.Object.Type, name)
}
