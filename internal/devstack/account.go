package devstack

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system's user that runs PostgreSQL. PostgreSQL refuses to run as root, so a
// process that runs as root starts PostgreSQL as an unprivileged user.
type account struct {
	uid, gid          int
	otherUser         bool // the account is not the user of this process
	needsCapabilities bool // the account may not enter a folder above the data
}

// Linux capabilities that let the unprivileged user reach data below folders that only root may enter.
const (
	capDACOverride   = 1
	capDACReadSearch = 2
)

// accountFor chooses the user that runs PostgreSQL on the data in dir, and makes this user the owner of dir.
// The folder must exist. If root does not own the folder, accountFor chooses the folder's owner, so that a
// later start can read the data of the first start.
func accountFor(dir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	a := account{otherUser: true}
	info, err := os.Stat(dir)
	if err != nil {
		return a, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	a.uid, a.gid = int(owner.Uid), int(owner.Gid)
	if a.uid == 0 {
		if a.uid, a.gid, err = unprivilegedUser(); err != nil {
			return a, err
		}
		if err := a.chown(dir); err != nil {
			return a, err
		}
	}
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm()&0o001 == 0 {
			a.needsCapabilities = true
		}
		if d == filepath.Dir(d) {
			return a, nil
		}
	}
}

func unprivilegedUser() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err1 == nil && err2 == nil && uid != 0 {
			return uid, gid, nil
		}
	}
	return 0, 0, fmt.Errorf(
		"PostgreSQL refuses to run as root, and this machine has neither a user postgres nor a user nobody: create one of them",
	)
}

// chown makes the account the owner of a file or folder.
func (a account) chown(path string) error {
	if !a.otherUser {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// attributes returns the attributes with which a child process is started. The attributes make the child
// process run as the account's user, and make the kernel end the child when this process ends or is killed.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if a.otherUser {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
		if a.needsCapabilities {
			attr.AmbientCaps = []uintptr{capDACOverride, capDACReadSearch}
		}
	}
	return attr
}
