package devstack

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is whom PostgreSQL runs as: it refuses root, so root lends it an unprivileged account.
type account struct {
	uid, gid int
	lent     bool // another one than ours
	reach    bool // a folder above the data is closed to it
}

// Linux capabilities with which a lent account gets through folders that only root may enter.
const (
	capDACOverride   = 1
	capDACReadSearch = 2
)

// accountFor picks the account for the data in dir, which must exist, and gives it the folder. Whoever owns the
// data keeps it, so that a second start finds what the first one wrote.
func accountFor(dir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	a := account{lent: true}
	info, err := os.Stat(dir)
	if err != nil {
		return a, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	a.uid, a.gid = int(owner.Uid), int(owner.Gid)
	if a.uid == 0 {
		if a.uid, a.gid, err = unprivileged(); err != nil {
			return a, err
		}
		if err := a.own(dir); err != nil {
			return a, err
		}
	}
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm()&0o001 == 0 {
			a.reach = true
		}
		if d == filepath.Dir(d) {
			return a, nil
		}
	}
}

func unprivileged() (uid, gid int, err error) {
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
	return 0, 0, fmt.Errorf("PostgreSQL does not run as root, and there is neither a user postgres nor nobody to run it as")
}

// own gives the account a file or folder.
func (a account) own(path string) error {
	if !a.lent {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// attributes make a child run as the account and end when we do, even when we are killed.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if a.lent {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
		if a.reach {
			attr.AmbientCaps = []uintptr{capDACOverride, capDACReadSearch}
		}
	}
	return attr
}
