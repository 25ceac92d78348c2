package devstack

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Scratch makes a folder for what ends with a run of tests, which the caller removes: in memory where that is
// plenty, because making and removing the files of a test's own database takes a disk several times as long as the
// test does, else where temporary files lie. PostgreSQL, which may run as another account, may enter it.
func Scratch() (string, error) {
	const pattern = "berth-test-"
	dir, err := os.MkdirTemp(memory(), pattern)
	if err != nil {
		dir, err = os.MkdirTemp("", pattern)
	}
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// memory is a folder whose files lie in memory, empty if there is none or it might become scarce.
func memory() string {
	const (
		folder = "/dev/shm"
		tmpfs  = 0x01021994
		files  = 3 << 30 // several times what a run of all tests was seen to need
		spare  = 6 << 30 // what the tests themselves need besides
	)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil || fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < files || available() < spare {
		return ""
	}
	return folder
}

// available is how many bytes of memory the kernel could still give away.
func available() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kilobytes, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
