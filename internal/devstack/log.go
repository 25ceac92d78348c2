package devstack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// childLog is the log file of a child process, and the offset at which the output of this child process
// begins.
type childLog struct {
	*os.File
	begin int64
}

func openLog(dir string) (*childLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	begin, err := f.Seek(0, io.SeekEnd)
	return &childLog{File: f, begin: begin}, err
}

// failureLines matches output lines in which a program says why it ended.
var failureLines = regexp.MustCompile(`(?i)\b(error|fatal|panic)\b`)

// explain adds a line of the child's output to the error: the last line that matches failureLines, or, if no
// line matches, the last line of the output.
func (l *childLog) explain(err error) error {
	const enough, longest = 64 << 10, 500
	text, _ := io.ReadAll(io.NewSectionReader(l.File, l.begin, enough))
	last, found := "", false
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if t := failureLines.MatchString(line); t || !found {
			last, found = line, t
		}
	}
	if last == "" {
		return err
	}
	return fmt.Errorf("%w; last output: %.*s", err, longest, last)
}
