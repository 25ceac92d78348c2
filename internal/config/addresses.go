package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// AddressFile is the name of a file in the folder BERTH_DATA. While a development run (`worker --dev`) is
// running, the file contains the addresses of its services.
const AddressFile = "env"

// WriteAddresses writes variables to the address file, as export commands of a shell. Shells and other
// programs read the address file to find the services of a development run.
func WriteAddresses(data string, values map[string]string) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(values[name], "'", `'\''`))
	}
	file := filepath.Join(data, AddressFile)
	if err := os.WriteFile(file+".new", b.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// RemoveAddresses deletes the address file. RemoveAddresses returns no error if the address file does not
// exist.
func RemoveAddresses(data string) error {
	err := os.Remove(filepath.Join(data, AddressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadOwnAddresses reads the variables of the address file in a folder as ReadAddresses does, but returns an
// error if another user than the one of this process, and root, can change the file. It opens the folder and
// the file once and checks what it has opened, because another user could replace them between two looks.
func ReadOwnAddresses(data string) (map[string]string, error) {
	folder, err := openOwn(unix.AT_FDCWD, data, data, unix.O_DIRECTORY)
	if err != nil {
		return parseAddresses(nil, err)
	}
	defer func() { _ = folder.Close() }()
	return parseAddresses(openOwn(int(folder.Fd()), AddressFile, filepath.Join(data, AddressFile), unix.O_NONBLOCK))
}

// openOwn opens a file or a folder, which must not be a link, in the folder of the descriptor. openOwn
// returns an error if another user can change it. The path is the one for errors.
func openOwn(in int, name, path string, flags int) (*os.File, error) {
	fd, err := unix.Openat(in, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	info, err := file.Stat()
	if err == nil {
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if owner != 0 && owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
			err = fmt.Errorf("another user can change %s; set BERTH_DATA=%s if you trust it", path, filepath.Dir(path))
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// ReadAddresses reads the variables of the address file. If the address file does not exist, ReadAddresses
// returns no variables and no error.
func ReadAddresses(data string) (map[string]string, error) {
	return parseAddresses(os.Open(filepath.Join(data, AddressFile)))
}

// parseAddresses reads the variables of an address file and closes it. The error is that of opening the file;
// a file that does not exist has no variables.
func parseAddresses(file *os.File, err error) (map[string]string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	values := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		if !ok || len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
			return nil, fmt.Errorf("%s: malformed line %q", file.Name(), lines.Text())
		}
		values[name] = strings.ReplaceAll(value[1:len(value)-1], `'\''`, "'")
	}
	return values, lines.Err()
}
