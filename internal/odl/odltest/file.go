package odltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// OpenFile returns a controller that stores its records in a file. Each write of an object appends one line
// of JSON to the file. OpenFile drops a last line without a newline, because the process died before it
// answered that request.
func OpenFile(path string) (*Controller, error) {
	c := New()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("rewrite the file %s of the OpenDaylight stub: %w", path, err)
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
			return nil, fmt.Errorf("file %s of the OpenDaylight stub: %w", path, err)
		}
		c.records[key(rec.Type, rec.ID)] = &rec
		c.resetView(&rec)
		raw = rest
	}
	if err := c.compact(path); err != nil {
		return nil, fmt.Errorf("file of the OpenDaylight stub: %w", err)
	}
	return c, nil
}

// compact rewrites the file with one line for each object, and keeps the file open for appending.
func (c *Controller) compact(path string) error {
	next := path + ".next"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	c.file = f
	for _, rec := range c.records {
		if err := c.appendToFile(rec); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// appendToFile appends a record to the file, if the controller has one.
func (c *Controller) appendToFile(rec *Record) error {
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

// Close closes the controller's file. Later writes fail.
func (c *Controller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}
