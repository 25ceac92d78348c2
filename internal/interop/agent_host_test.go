package interop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

// agentHost is a host with Open vSwitch and Neutron agents from Debian's packages. If the test may create
// Linux namespaces, an agentHost has its own network and mount namespaces: Open vSwitch forwards between
// kernel devices, and dnsmasq serves DHCP. If the test may not create namespaces, Open vSwitch uses its dummy
// datapath, which needs no privilege, and a stub replaces the DHCP driver of the DHCP agent.
type agentHost struct {
	*servertest.Deployment
	name        string
	dir         string
	programRoot string // root folder of Debian's programs
	release     agentRelease
	broker      *devstack.RabbitMQ
	brokerURL   string // of the agents
	// process that holds the host's namespaces; 0 if there are none
	namespacePID int
	agents       map[string]*servertest.Process // by the name of the program
}

// newAgentHost creates a host. The agents that the test starts on the host later connect to the given URL of
// the RabbitMQ broker.
func newAgentHost(
	s *servertest.Deployment,
	name string,
	broker *devstack.RabbitMQ,
	brokerURL string,
) *agentHost {
	s.Helper()
	h := &agentHost{
		Deployment:  s,
		name:        name,
		dir:         servertest.DataFolder(s.T),
		programRoot: debianAgents(s.T),
		release:     testedRelease(s.T),
		broker:      broker,
		brokerURL:   brokerURL,
		agents:      map[string]*servertest.Process{},
	}
	if err := os.Mkdir(h.dir, 0o755); err != nil {
		s.Fatal(err)
	}
	h.release.writePrograms(s.T, h.dir)
	h.startNamespaces()
	h.writeConfig()
	return h
}

// startSwitch starts Open vSwitch on the host.
func (h *agentHost) startSwitch() {
	h.Helper()
	if out, err := h.command("ovsdb-tool", "create", h.file("conf.db"), filepath.Join(h.programRoot, "usr/share/openvswitch/vswitch.ovsschema")).CombinedOutput(); err != nil {
		h.Fatalf("create the database of Open vSwitch with ovsdb-tool: %v\n%s", err, out)
	}
	h.run("ovsdb-server", "--remote=punix:"+h.file("db.sock"),
		"-vconsole:warn", "--unixctl="+h.file("db.ctl"), h.file("conf.db"))
	h.Await("the switch's database answers", func() string {
		if _, err := os.Stat(h.file("db.sock")); err != nil {
			return err.Error()
		}
		return ""
	})
	h.vsctl("--no-wait", "init")
	options := []string{
		"unix:" + h.file("db.sock"),
		"--disable-system",
		"-vconsole:err",
		"--unixctl=" + h.file("vs.ctl"),
	}
	if h.namespacePID == 0 {
		options = append(options, "--enable-dummy=override", "--disable-system-route")
	}
	h.run("ovs-vswitchd", options...)
}

// debianAgents returns the root folder into which Debian's agent packages are unpacked.
func debianAgents(t *testing.T) string {
	t.Helper()
	var said bytes.Buffer
	find := exec.CommandContext(t.Context(), "../../tools/agents.sh")
	find.Stderr = &said
	tree, err := find.Output()
	if err != nil {
		t.Fatalf("Neutron's agents are not installed; run `make deps` to install them: %v\n%s",
			err, said.String())
	}
	return strings.TrimSpace(string(tree))
}

func (h *agentHost) file(name string) string { return filepath.Join(h.dir, name) }

// command returns a command that runs a program of the tested release or of Debian's packages, with sockets
// in the test's folders.
func (h *agentHost) command(name string, args ...string) *exec.Cmd {
	under := func(folders ...string) string {
		for i, f := range folders {
			folders[i] = filepath.Join(h.programRoot, f)
		}
		return strings.Join(folders, ":")
	}
	path := h.file("bin") + ":" +
		under("usr/bin", "usr/sbin", "usr/lib/openvswitch-switch") +
		":/usr/sbin:/usr/bin:/sbin:/bin"
	libraries := h.dir
	if h.release.python == "" {
		libraries = under("usr/lib/python3/dist-packages") + ":" + libraries
	}
	program := name
	for _, folder := range strings.Split(path, ":") {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			program = filepath.Join(folder, name)
			break
		}
	}
	cmd := exec.CommandContext(h.Context(), program, args...)
	cmd.Dir = h.dir
	cmd.Env = []string{
		"PATH=" + path,
		"HOME=" + h.dir,
		"TMPDIR=" + h.dir,
		"LC_ALL=C.UTF-8",
		"LD_LIBRARY_PATH=" + under("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"),
		"PYTHONPATH=" + libraries,
		"PYTHONUNBUFFERED=yes",
		"XTABLES_LIBDIR=" + under("usr/lib/x86_64-linux-gnu/xtables", "usr/lib/aarch64-linux-gnu/xtables"),
		"OVS_RUNDIR=" + h.dir,
		"OVS_LOGDIR=" + h.dir,
		"OVS_DBDIR=" + h.dir,
		"OVS_SYSCONFDIR=" + h.dir,
	}
	return cmd
}

// run starts a program on the host. run kills the program when the test ends.
func (h *agentHost) run(name string, args ...string) *servertest.Process {
	h.Helper()
	cmd := h.inNamespaces(h.command(name, args...))
	// agents must be root, at least of their own user namespace
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: gid, Size: 1}},
		}
	}
	r := servertest.StartCommand(h.T, cmd)
	h.Cleanup(func() {
		h.kill(r)
		if h.Failed() {
			h.Logf("output of %s on host %s:\n%s", name, h.name, r.Output())
		}
	})
	return r
}

// kill sends SIGKILL to a process and waits until the process has ended.
func (h *agentHost) kill(r *servertest.Process) {
	_ = r.Cmd.Process.Kill()
	<-r.Done
}

func (h *agentHost) vsctl(args ...string) string {
	h.Helper()
	out, err := h.command("ovs-vsctl", append([]string{"--timeout=60", "--db=unix:" + h.file("db.sock")}, args...)...).
		CombinedOutput()
	if err != nil {
		h.Fatalf("run ovs-vsctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// plug adds the port's network device to the switch, as Nova does.
func (h *agentHost) plug(p serverPort) {
	h.Helper()
	h.vsctl("--may-exist", "add-port", "br-int", p.tap(), "--", "set", "Interface", p.tap(), "type=internal",
		"external_ids:iface-id="+p.id, "external_ids:iface-status=active", "external_ids:attached-mac="+p.mac)
}

func (h *agentHost) unplug(p serverPort) {
	h.Helper()
	h.vsctl("del-port", "br-int", p.tap())
}

// vlan returns the VLAN tag that the Open vSwitch agent has given to the port's device, or "" if the device
// has no tag.
func (h *agentHost) vlan(p serverPort) string {
	h.Helper()
	return strings.Trim(h.vsctl("--if-exists", "get", "Port", p.tap(), "tag"), "[]")
}

// tap returns the name of the port's network device.
func (p serverPort) tap() string { return "tap" + p.id[:11] }

// restartBroker kills RabbitMQ and starts RabbitMQ again.
func (h *agentHost) restartBroker() {
	h.Helper()
	h.broker.Kill()
	if err := h.broker.Start(h.Context()); err != nil {
		h.Fatal(err)
	}
}

// start starts an agent. The name of the agent's configuration file follows from the name of the agent's
// program.
func (h *agentHost) start(program string) {
	h.Helper()
	name := strings.NewReplacer("neutron-", "", "-", "_").Replace(program)
	h.agents[program] = h.run(program, "--config-file", h.file(name+".ini"))
}

// writeConfig writes the configuration files of the agents.
func (h *agentHost) writeConfig() {
	h.Helper()
	shared := fmt.Sprintf(`[DEFAULT]
host = %s
transport_url = %s
state_path = %s
rpc_response_timeout = 10
logging_exception_prefix =
[agent]
root_helper =
[oslo_concurrency]
lock_path = %s
[ovs]
ovsdb_connection = unix:%s
`, h.name, strings.Replace(h.brokerURL, "amqp://", "rabbit://", 1), h.dir, h.dir, h.file("db.sock"))
	for _, section := range []string{"privsep", "privsep_dhcp_release", "privsep_ovs_vsctl", "privsep_namespace", "privsep_conntrack", "privsep_link"} {
		shared += fmt.Sprintf("[%s]\nhelper_command = privsep-helper\n", section)
	}
	for _, name := range []string{"berth_dhcp.py", "lease.py", "network_card.py"} {
		text, err := os.ReadFile(filepath.Join("testdata/agents", name))
		if err != nil {
			h.Fatal(err)
		}
		h.writeFile(name, string(text))
	}
	drivers := "interface_driver = openvswitch\n"
	if h.namespacePID == 0 {
		drivers = "interface_driver = null\ndhcp_driver = berth_dhcp.Driver\n"
	}
	h.writeFile("dhcp_agent.ini", shared+"[DEFAULT]\n"+drivers)
	// The Open vSwitch agent listens on a fixed port of a random loopback address; if it used a free port,
	// another process could take this port first.
	h.writeFile("openvswitch_agent.ini", shared+fmt.Sprintf(`[ovs]
of_listen_address = 127.%d.%d.%d
local_ip = 127.0.0.1
datapath_type = netdev
[agent]
tunnel_types = vxlan
[securitygroup]
firewall_driver = openvswitch
`, 1+rand.N(254), rand.N(256), 1+rand.N(254)))
	h.writeFile("l3_agent.ini", shared+"[DEFAULT]\n"+drivers)
	h.writeFile("metadata_agent.ini", shared)
	h.writeFile("sriov_nic_agent.ini",
		shared+"[sriov_nic]\nphysical_device_mappings = physnet1:"+physicalFunction+"\n")
	h.writeFile(
		"macvtap_agent.ini",
		shared+"[macvtap]\nphysical_interface_mappings = physnet1:"+macvtapParent+"\n[securitygroup]\nfirewall_driver = noop\n",
	)
}

func (h *agentHost) writeFile(name, text string) {
	h.Helper()
	if err := os.WriteFile(h.file(name), []byte(text), 0o644); err != nil {
		h.Fatal(err)
	}
}
