package main

import (
	"fmt"
	"os"
	"strings"

	"berth/starter/cli"
)

// change sets an attribute of a stored object to the value of the pair KEY=VALUE. If the key is `new`, change
// adds an object with the attributes in VALUE. If the pair is the word `deleted`, change deletes the object.
func (s *apiStub) change(collection, name, pair string) error {
	key, value, _ := strings.Cut(pair, "=")
	switch key {
	case "deleted":
		return s.drop(collection, name)
	case "new":
		var o cli.Object
		if err := cli.Decode([]byte(value), &o); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(collection, o)
		return nil
	}
	var v any
	if cli.Decode([]byte(value), &v) != nil {
		v = value
	}
	return s.set(collection, name, key, v)
}

// drop deletes an object of the stub, without a request.
func (s *apiStub) drop(collection, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, o := range s.collections[collection] {
		if o["name"] == name {
			delete(s.collections[collection], id)
			return nil
		}
	}
	return os.ErrNotExist
}

// reads returns how often clients have read the list of ports, and how often clients have read a single port.
func (s *apiStub) reads() (lists, ports int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		switch {
		case strings.HasPrefix(r, "GET /networking/v2.0/ports "):
			lists++
		case strings.HasPrefix(r, "GET /networking/v2.0/ports/"):
			ports++
		}
	}
	return lists, ports
}

// requested reports whether the API got a request that contains the text.
func (s *apiStub) requested(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.Contains(r, text) {
			return true
		}
	}
	return false
}

// set sets an attribute of an object of the stub, without a request.
func (s *apiStub) set(collection, name, key string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.collections[collection] {
		if o["name"] == name {
			o[key] = value
			return nil
		}
	}
	return fmt.Errorf("no %s is named %q", collection, name)
}
