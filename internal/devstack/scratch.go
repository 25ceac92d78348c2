package devstack

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Scratch creates a folder for the files of a test run. The caller removes the folder. The folder is in
// memory if enough memory is free, because creating and removing a test database on disk takes longer than
// the test. PostgreSQL, which may run as another user, can enter the folder.
func Scratch() (string, error) {
	const pattern = "berth-test-"
	dir, err := os.MkdirTemp(memoryDir(), pattern)
	if err != nil {
		dir, err = os.MkdirTemp("", pattern)
	}
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// memoryDir returns a folder on a memory file system. memoryDir returns "" if there is no such folder or too
// little memory is available.
func memoryDir() string {
	const (
		folder = "/dev/shm"
		tmpfs  = 0x01021994
		files  = 3 << 30 // bytes for the databases; several times what all tests need
		spare  = 6 << 30 // bytes for the test processes
	)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil || fs.Type != tmpfs ||
		fs.Bavail*uint64(fs.Bsize) < files ||
		availableMemory() < spare {
		return ""
	}
	return folder
}

// availableMemory returns the memory in bytes that the kernel can allocate without swapping.
func availableMemory() int64 {
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
