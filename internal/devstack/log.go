package devstack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// childLog is the file that a child writes to, from where this child begins.
type childLog struct {
	*os.File
	begin int64
}

func openLog(dir string) (*childLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	begin, err := f.Seek(0, io.SeekEnd)
	return &childLog{File: f, begin: begin}, err
}

// trouble finds the lines in which a program says why it ends.
var trouble = regexp.MustCompile(`(?i)\b(error|fatal|panic)\b`)

// explain adds the last trouble that the child wrote of, or else its last line, to the error that it caused.
func (l *childLog) explain(err error) error {
	const enough, longest = 64 << 10, 500
	text, _ := io.ReadAll(io.NewSectionReader(l.File, l.begin, enough))
	last, found := "", false
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if t := trouble.MatchString(line); t || !found {
			last, found = line, t
		}
	}
	if last == "" {
		return err
	}
	return fmt.Errorf("%w; it said: %.*s", err, longest, last)
}
