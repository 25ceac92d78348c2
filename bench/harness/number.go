package harness

import (
	"fmt"
	"strings"
)

// Thousands renders a number that is not negative, with commas between the thousands.
func Thousands(n int) string {
	text := fmt.Sprint(n)
	var groups []string
	for len(text) > 3 {
		groups = append([]string{text[len(text)-3:]}, groups...)
		text = text[:len(text)-3]
	}
	return strings.Join(append([]string{text}, groups...), ",")
}
