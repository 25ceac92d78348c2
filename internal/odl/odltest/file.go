package odltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Open is a controller whose objects and counts outlive it in a file of JSON lines, one for each write. A line
// that a crash has cut off was never answered and is dropped.
func OpenFile(path string) (*Controller, error) {
	c := New()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("controller's file: %w", err)
	}
	for len(raw) > 0 {
		line, rest, whole := bytes.Cut(raw, []byte("\n"))
		if !whole {
			break
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var rec Record
		if err := d.Decode(&rec); err != nil {
			return nil, fmt.Errorf("controller's file %s: %w", path, err)
		}
		c.records[key(rec.Type, rec.ID)] = &rec
		raw = rest
	}
	if err := c.compact(path); err != nil {
		return nil, fmt.Errorf("controller's file: %w", err)
	}
	return c, nil
}

// compact rewrites the file with the last line of each object and leaves it open for more.
func (c *Controller) compact(path string) error {
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	c.file = f
	for _, rec := range c.records {
		if err := c.keep(rec); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// keep appends a record to the file, if there is one.
func (c *Controller) keep(rec *Record) error {
	if c.file == nil {
		return nil
	}
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	_, err = c.file.Write(append(line, '\n'))
	return err
}

// Close closes the file. The controller refuses writes afterwards.
func (c *Controller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}
