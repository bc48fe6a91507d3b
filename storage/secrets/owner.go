package secrets

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner sets the owner of file, which this process created, to that of info, unless that
// is this process's user and group. An administrator may rotate the key of a server that
// runs as another user.
func keepOwner(file *os.File, info fs.FileInfo) error {
	raw, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(raw.Uid) == os.Geteuid() && int(raw.Gid) == os.Getegid() {
		return nil
	}
	return file.Chown(int(raw.Uid), int(raw.Gid))
}
