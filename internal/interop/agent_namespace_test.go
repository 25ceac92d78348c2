package interop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holderScript sets up the network and mount namespaces of an agentHost, if the host has namespaces, and
// keeps them until the script's input ends. When the script's input has ended, holderScript kills all
// programs that still use the host's folder.
const holderScript = `set -e
if [ -n "$OWN" ]; then
	mount --make-rprivate /
	mount -t tmpfs tmpfs /run
	mkdir /run/netns
	ip link set lo up
	ip netns add probe
	ip tuntap add mode tap name probe
	ip link set probe netns probe
	ip netns exec probe iptables -t mangle -A POSTROUTING -p udp -m udp --dport 68 -j CHECKSUM --checksum-fill
	ip netns del probe
fi
echo ready
cat >/dev/null
for p in /proc/[0-9]*; do
	! grep -qsF "$FOLDER" "$p/cmdline" || kill -9 "${p#/proc/}" || true
done
`

// startNamespaces starts the process that keeps the host's network and mount namespaces. If the test process
// may not create namespaces, the agentHost has no namespaces of its own.
func (h *agentHost) startNamespaces() {
	h.Helper()
	why := "not root"
	if os.Geteuid() == 0 {
		if h.namespacePID, why = h.startHolder(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS); why == "" {
			h.forwardBroker()
			return
		}
	}
	h.Logf(
		"the test process may not create network namespaces, so Open vSwitch uses its dummy datapath and a stub replaces the DHCP driver; reason: %s",
		why,
	)
	if _, why = h.startHolder(0); why != "" {
		h.Fatal(why)
	}
}

// startHolder starts holderScript and returns the script's process ID. If holderScript cannot be started,
// startHolder returns the reason in `why`.
func (h *agentHost) startHolder(flags uintptr) (pid int, why string) {
	h.Helper()
	cmd := h.command("sh", "-c", holderScript)
	cmd.Cancel = func() error { return nil } // the script ends by itself when its input ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Setpgid: true}
	cmd.Env = append(cmd.Env, "FOLDER="+h.dir)
	if flags != 0 {
		cmd.Env = append(cmd.Env, "OWN=yes")
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		h.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		h.Fatal(err)
	}
	var wrong strings.Builder
	cmd.Stderr = &wrong
	if err := cmd.Start(); err != nil {
		return 0, err.Error()
	}
	first, _ := bufio.NewReader(said).ReadString('\n')
	if first != "ready\n" {
		_ = in.Close()
		err := cmd.Wait()
		return 0, fmt.Sprint(err, " ", wrong.String())
	}
	h.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, ""
}

// inNamespaces changes the command so that the command runs in the network and mount namespaces of the
// agentHost. If the agentHost has no namespaces, inNamespaces returns the command unchanged.
func (h *agentHost) inNamespaces(cmd *exec.Cmd) *exec.Cmd {
	if h.namespacePID == 0 {
		return cmd
	}
	cmd.Args = append(
		[]string{"nsenter", "-t", strconv.Itoa(h.namespacePID), "-n", "-m", "--", cmd.Path},
		cmd.Args[1:]...)
	cmd.Path = "/usr/bin/nsenter"
	return cmd
}

// ip runs a command of iproute2 in the host's namespaces.
func (h *agentHost) ip(args ...string) string {
	h.Helper()
	out, err := h.inNamespaces(h.command("ip", args...)).CombinedOutput()
	if err != nil {
		h.Fatalf("run the command ip %s in the host's namespaces: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// forwardBroker makes RabbitMQ reachable from the host's network namespace, at the same address as outside
// the namespace.
func (h *agentHost) forwardBroker() {
	h.Helper()
	broker, err := url.Parse(h.broker.URL(0))
	if err != nil {
		h.Fatal(err)
	}
	address := broker.Host
	type made struct {
		net.Listener
		error
	}
	door := make(chan made)
	go func() {
		// never unlocked: the thread enters another network namespace and must end with this goroutine
		runtime.LockOSThread()
		space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", h.namespacePID))
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err != nil {
			door <- made{error: err}
			return
		}
		l, err := net.Listen("tcp", address)
		door <- made{l, err}
	}()
	l := <-door
	if l.error != nil {
		h.Fatalf("listen for connections to RabbitMQ in the host's network namespace: %v", l.error)
	}
	h.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go forward(conn, address)
		}
	}()
}

// forward connects to the address and copies data between the connection `one` and the new connection until
// one of the two closes.
func forward(one net.Conn, address string) {
	defer func() { _ = one.Close() }()
	other, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	ended := make(chan error, 2)
	for _, way := range [][2]net.Conn{{one, other}, {other, one}} {
		go func() {
			_, err := io.Copy(way[0], way[1])
			ended <- err
		}()
	}
	<-ended
}

// servesDHCP reports whether the host's DHCP agent serves the network.
func (h *agentHost) servesDHCP(network string) bool {
	if h.namespacePID == 0 {
		said := h.agents[dhcpAgent].Output()
		at := strings.LastIndex(said, "dhcp ")
		return at >= 0 && strings.HasPrefix(said[at:], "dhcp serves "+network)
	}
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(h.namespacePID), "root/run/netns/qdhcp-"+network))
	return err == nil
}

// bootServer moves the port's device into a network namespace of its own, which simulates a server.
// bootServer returns the address that the device gets by DHCP.
func (h *agentHost) bootServer(p serverPort) string {
	h.Helper()
	h.ip("netns", "add", p.tap())
	h.ip("link", "set", p.tap(), "netns", p.tap())
	h.ip("-n", p.tap(), "link", "set", p.tap(), "address", p.mac, "up")
	return h.ip("netns", "exec", p.tap(), "/usr/bin/python3", h.file("lease.py"), p.tap(), p.mac)
}
