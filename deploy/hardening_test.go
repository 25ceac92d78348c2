package deploy_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"berth/internal/config"
)

// hardening is the part of a service that limits what the processes of its container can do.
type hardening struct {
	User        string
	Privileged  bool
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	CapAdd      []string `yaml:"cap_add"`
	GroupAdd    []string `yaml:"group_add"`
	SecurityOpt []string `yaml:"security_opt"`
	NetworkMode string   `yaml:"network_mode"`
	Networks    []string
	Deploy      struct {
		Resources struct {
			Limits struct {
				CPUs, Memory string
				PIDs         int
			}
		}
	}
}

// startsAsRoot lists the images whose process starts as root, and changes the user itself, unless the service
// names another user.
var startsAsRoot = []string{"postgres", "rabbitmq"}

// checkHardening checks that a service can neither write to its root file system nor use or gain privileges,
// and that its resources are limited.
func checkHardening(s service) (found []string) {
	image, _, _ := strings.Cut(s.Image, ":")
	limits := s.Deploy.Resources.Limits
	for problem, wrong := range map[string]bool{
		"the root file system is writable":  !s.ReadOnly,
		"keeps capabilities":                !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0,
		"can gain privileges":               s.Privileged || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}),
		"has no limit of processors":        limits.CPUs == "",
		"has no limit of memory":            limits.Memory == "",
		"has no limit of processes":         limits.PIDs == 0,
		"has no GOMEMLIMIT below its limit": s.isBerth() && !s.isOneShot() && !(bytesOf(s.Environment["GOMEMLIMIT"]) > 0 && bytesOf(s.Environment["GOMEMLIMIT"]) < bytesOf(limits.Memory)),
		"starts as root":                    slices.Contains(startsAsRoot, image) && (s.User == "" || strings.HasPrefix(s.User, "0") || s.User == "root"),
		"is in the network of the machine":  s.NetworkMode != "",
	} {
		if wrong {
			found = append(found, problem)
		}
	}
	return found
}

// bytesOf parses a size of memory as Compose and Go write it, or returns 0.
func bytesOf(size string) (n float64) {
	var unit string
	if _, err := fmt.Sscanf(size, "%f%s", &n, &unit); err != nil {
		return 0
	}
	return n * map[string]float64{
		"M":   1 << 20,
		"G":   1 << 30,
		"MiB": 1 << 20,
		"GiB": 1 << 30,
	}[unit]
}

// isolated lists the services that have nothing to do with other machines.
var isolated = []string{"postgres", "temporal-schema", "temporal-namespace", "migrate", "rpc"}

// checkNetworks checks that a service is in the networks that it needs: it reaches each service that its
// environment names, and it reaches other machines only if this is its work.
func checkNetworks(c compose, name string) (found []string) {
	s := c.Services[name]
	if len(s.Networks) == 0 {
		return []string{name + " names no network"}
	}
	reachesOthers := false
	for _, network := range s.Networks {
		n, exists := c.Networks[network]
		if !exists {
			found = append(found, "no network "+network)
		}
		reachesOthers = reachesOthers || !n.Internal
	}
	switch {
	case slices.Contains(isolated, name) && reachesOthers:
		found = append(found, name+" reaches other machines")
	case len(s.Ports) > 0 && !reachesOthers:
		found = append(found, name+" publishes a port, but is in internal networks only")
	}
	for variable, value := range s.Environment {
		if slices.Contains(config.SecretFileVariables(), variable) {
			raw, _ := os.ReadFile(hostPath(s, value)) // checkMounts reports an error
			value = strings.TrimSpace(string(raw))
		}
		other, exists := c.Services[hostOf(value)]
		// The API only records notifications for agents, and does not connect to the broker that it names.
		if exists && hostOf(value) != name && !(name == "api" && hostOf(value) == "rabbitmq") &&
			!sharesNetwork(s, other) {
			found = append(found, name+" does not reach "+hostOf(value))
		}
	}
	return found
}

// hostOf returns the host in a value of an environment variable, which may be a URL, a host with a port, or a
// host.
func hostOf(value string) string {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		return u.Hostname()
	}
	host, _, _ := strings.Cut(value, ":")
	return host
}

func sharesNetwork(a, b service) bool {
	return slices.ContainsFunc(a.Networks,
		func(network string) bool { return slices.Contains(b.Networks, network) })
}

// checkTemporalTLS checks that Temporal accepts only clients with a certificate and a token, and that the
// certificate of a client does not open the services behind the frontend. TestTemporal_RefusesStrangers
// checks the effect.
func checkTemporalTLS(s service) (found []string) {
	if !strings.HasPrefix(s.Image, "temporalio/server:") {
		return nil
	}
	if s.Environment["TEMPORAL_TLS_REQUIRE_CLIENT_AUTH"] != "true" {
		found = append(found, "accepts clients without a certificate")
	}
	if s.Environment["TEMPORAL_AUTH_AUTHORIZER"] != "default" ||
		s.Environment["TEMPORAL_AUTH_CLAIM_MAPPER"] != "default" {
		found = append(found, "accepts clients without a token")
	}
	if s.Environment["TEMPORAL_TLS_SERVER_CA_CERT"] == s.Environment["TEMPORAL_TLS_CLIENT1_CA_CERT"] {
		found = append(found, "clients reach the services behind the frontend")
	}
	return found
}

// isSecureBroker reports whether a service is a RabbitMQ broker that accepts only connections with TLS.
// RabbitMQ authenticates its clients.
func isSecureBroker(f files, s service) bool {
	return strings.HasPrefix(s.Image, "rabbitmq:") &&
		strings.Contains(f[rabbitConf], "\nlisteners.tcp = none\n")
}

// checkBroker checks that the messages of an agent cannot fill the disk, on which the volume of PostgreSQL
// is, too, that RabbitMQ takes the largest answer of berth, and that it ends clients that keep messages.
func checkBroker(f files, s service) (found []string) {
	if !strings.HasPrefix(s.Image, "rabbitmq:") {
		return nil
	}
	if !strings.Contains(f[rabbitConf], "\ndisk_free_limit.absolute = ") {
		found = append(found, "can fill the disk")
	}
	if !strings.Contains(f[rabbitConf], "\nmax_message_size = 33554432\n") {
		found = append(found, "does not take messages of 32 MiB")
	}
	if !strings.Contains(f[rabbitConf], "\nconsumer_timeout = 300000\n") {
		found = append(found, "lets clients keep messages for long")
	}
	return found
}

// private is the folder with the certificates that deploy/certificates.sh has created for the tests. It
// replaces deploy/private.
var private string

func createCertificates(folder string, arguments ...string) (string, error) {
	cmd := exec.Command("./certificates.sh", arguments...)
	cmd.Env = append(os.Environ(), "BERTH_PRIVATE="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("certificates.sh: %w: %s", err, out)
	}
	return folder, nil
}

// mountSource returns the path on this machine of the source of a mount.
func mountSource(source string) string {
	if inside, ok := strings.CutPrefix(source, "./deploy/private/"); ok {
		return filepath.Join(private, inside)
	}
	return filepath.Join("..", source)
}

// hostPath returns the path on this machine of a path or file URL in the container of a service. The result
// is "" if nothing is mounted there.
func hostPath(s service, path string) string {
	if inside, ok := strings.CutPrefix(path, "file://"); ok {
		return "file://" + hostPath(s, inside)
	}
	for _, volume := range s.Volumes {
		parts := strings.Split(volume, ":")
		if path == parts[1] {
			return mountSource(parts[0])
		}
		if inside, ok := strings.CutPrefix(path, parts[1]+"/"); ok {
			return filepath.Join(mountSource(parts[0]), inside)
		}
	}
	return ""
}

// isMounted reports whether a file in a mounted folder exists.
func isMounted(s service, path string) bool {
	_, err := os.Stat(strings.TrimPrefix(hostPath(s, path), "file://"))
	return err == nil
}
