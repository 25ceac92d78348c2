package cli

import (
	"cmp"
	"fmt"
	"strings"

	"berth/internal/config"
)

// Environment is the environment of the process. If the process does not have a variable, Environment takes
// the variable from the address file of a development run ($BERTH_DATA/env, which `make run` writes).
// Environment implements envconfig.EnvLookup.
type Environment struct {
	process map[string]string
	file    map[string]string
}

// LookupEnv returns the value of a variable, and whether the variable is set and not empty.
func (e Environment) LookupEnv(name string) (string, bool) {
	value := cmp.Or(e.process[name], e.file[name])
	return value, value != ""
}

// Environ lists the variables of the process and of the address file as NAME=VALUE. If both the process and
// the address file have a variable, Environ lists the value of the process.
func (e Environment) Environ() []string {
	all := make([]string, 0, len(e.process)+len(e.file))
	for name, value := range e.process {
		all = append(all, name+"="+value)
	}
	for name, value := range e.file {
		if e.process[name] == "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// SecretFiles returns the files that the variables name and that have, or can have, secret settings.
func (e Environment) SecretFiles() []string { return config.SecretFiles(e.Environ()) }

// Get returns the value of a variable, or an empty string if the variable is not set.
func (e Environment) Get(name string) string {
	value, _ := e.LookupEnv(name)
	return value
}

// readEnvironment reads the process environment, and the address file in the data folder that BERTH_DATA
// names, or in the folder .berth of the current folder if no other user can change it: the address file says
// to which servers starter sends tokens and passwords. A missing address file is not an error.
func readEnvironment(environ []string) (Environment, error) {
	e := Environment{process: map[string]string{}}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		e.process[name] = value
	}
	var err error
	if data := e.process["BERTH_DATA"]; data != "" {
		e.file, err = config.ReadAddresses(data)
	} else { // the current folder may belong to another user, as /tmp does
		e.file, err = config.ReadOwnAddresses(".berth")
	}
	if err != nil {
		return e, fmt.Errorf("read the addresses of the development run: %w", err)
	}
	if e.process["BERTH_LISTEN"] != "" {
		delete(e.file, "BERTH_URL")
		delete(e.file, "BERTH_OPERATOR_LISTEN")
	}
	return e, nil
}
