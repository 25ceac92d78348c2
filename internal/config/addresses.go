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

// CheckAddressOwner returns an error if another user than the one of this process, and root, can change the
// address file in a folder. Without an address file, there is nothing to change.
func CheckAddressOwner(data string) error {
	for _, path := range []string{data, filepath.Join(data, AddressFile)} {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if owner != 0 && owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("another user can change %s; set BERTH_DATA=%s if you trust it", path, data)
		}
	}
	return nil
}

// ReadAddresses reads the variables of the address file. If the address file does not exist, ReadAddresses
// returns no variables and no error.
func ReadAddresses(data string) (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(data, AddressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		if !ok || len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
			return nil, fmt.Errorf("%s: malformed line %q", filepath.Join(data, AddressFile), lines.Text())
		}
		values[name] = strings.ReplaceAll(value[1:len(value)-1], `'\''`, "'")
	}
	return values, lines.Err()
}
