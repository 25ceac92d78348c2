package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"berth/internal/devstack"
)

//go:embed keystone_server.py
var keystoneServer string

type object = map[string]any

// startKeystone creates Keystone's database with one administrator, starts Keystone and requests a token.
// Keystone hashes passwords with the lowest possible cost and caches database reads, because Tempest creates
// several users for each class of tests.
func (c *cloud) startKeystone() error {
	port, err := devstack.Port(0)
	if err != nil {
		return err
	}
	c.keystone = fmt.Sprintf("http://127.0.0.1:%d", port)
	dir := filepath.Join(c.dir, "keystone")
	if err := os.MkdirAll(filepath.Join(dir, "keys"), 0o700); err != nil {
		return err
	}
	conf := fmt.Sprintf(
		"[DEFAULT]\nlog_file = %[1]s/log\n[database]\nconnection = sqlite:///%[1]s/database\n"+
			"[fernet_tokens]\nkey_repository = %[1]s/keys\n[token]\nexpiration = 86400\n[identity]\npassword_hash_rounds = 4\n[cache]\nbackend = dogpile.cache.memory\n",
		dir,
	)
	file := filepath.Join(dir, "keystone.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"db_sync"},
		{"fernet_setup", "--keystone-user", strconv.Itoa(os.Getuid()), "--keystone-group", strconv.Itoa(os.Getgid())},
		{"bootstrap", "--bootstrap-password", password, "--bootstrap-public-url", c.keystone + "/v3", "--bootstrap-region-id", "RegionOne"},
	} {
		arguments = append([]string{"--config-file", file}, arguments...)
		if _, err := output(c.ctx, c.pythons["suites"].command("keystone-manage", arguments...)); err != nil {
			return err
		}
	}
	server := exec.Command(string(c.pythons["suites"]), "-c", keystoneServer)
	server.Env = append(
		os.Environ(), "OS_KEYSTONE_CONFIG_DIR="+dir,
		"OS_KEYSTONE_CONFIG_FILES=keystone.conf", fmt.Sprintf("PORT=%d", port),
	)
	if err := c.startServer("keystone", server); err != nil {
		return err
	}
	return c.await(c.login)
}

// login requests a token of the administrator. It reports whether Keystone has answered with a token.
func (c *cloud) login() bool {
	domain := object{"id": "default"}
	body, _ := json.Marshal(object{"auth": object{
		"identity": object{
			"methods":  []string{"password"},
			"password": object{"user": object{"name": "admin", "domain": domain, "password": password}},
		},
		"scope": object{"project": object{"name": "admin", "domain": domain}},
	}})
	answer, err := http.Post(c.keystone+"/v3/auth/tokens", "application/json", bytes.NewReader(body))
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	c.token = answer.Header.Get("X-Subject-Token")
	return c.token != ""
}

// registerService adds a service with one endpoint to Keystone's catalog.
func (c *cloud) registerService(kind, url string) error {
	var made struct{ Service struct{ ID string } }
	if err := c.call("POST", c.keystone+"/v3/services", object{"service": object{"type": kind, "name": "berth"}}, &made); err != nil {
		return err
	}
	return c.call("POST", c.keystone+"/v3/endpoints", object{"endpoint": object{
		"service_id": made.Service.ID,
		"interface":  "public",
		"region_id":  "RegionOne",
		"url":        url,
	}}, nil)
}

// call sends a request as the administrator and decodes the answer.
func (c *cloud) call(method, url string, body, answer any) error {
	var raw []byte
	var err error
	if body != nil {
		raw, err = json.Marshal(body)
	}
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(c.ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err = io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, url, response.Status, raw)
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(raw, answer)
	}
	return err
}
