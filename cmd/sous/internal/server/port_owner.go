package server

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// portOwner names the process that listens on port, as "python3 (pid 42)". A process of
// another user cannot be named without root.
func portOwner(port string) string {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "another program"
	}
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningInodes(table, uint16(number), inodes)
	}
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return "another program"
	}
	for _, descriptor := range descriptors {
		target, err := os.Readlink(descriptor)
		if err != nil || !inodes[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] {
			continue
		}
		pid := strings.Split(descriptor, "/")[2]
		name, _ := os.ReadFile("/proc/" + pid + "/comm") // the process may have ended: its pid is left
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
	}
	return "a program of another user (sudo ss -ltnp 'sport = :" + port + "' names it)"
}

// listeningInodes adds to into the inodes of the sockets that listen on port. A line of the
// table begins with "0: 0100007F:1F90 00000000:0000 0A", and its tenth field is the inode.
func listeningInodes(table string, port uint16, into map[string]bool) {
	file, err := os.Open(table)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }() // only read
	want := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], want) && fields[3] == listening {
			into[fields[9]] = true
		}
	}
}
