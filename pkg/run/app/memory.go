package app

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// MemoryLimit is how much memory the process should use, in bytes, according to the
// limits of its control groups in the machine's file system; 0 if there is no limit.
// share is the fraction of the group's memory for this process; the rest is for what
// the limit does not count, and for other processes.
func MemoryLimit(root fs.FS, share float64) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// hierarchy:controllers:path, see cgroups(7).
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := "sys/fs/cgroup", "memory.max"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// The limits of the enclosing groups apply too. In a container its own group is
		// often the root of the mount.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if limit, ok := readLimit(root, path.Join(dir, at, file)); ok {
				least = min(least, limit)
			}
			if at == "/" {
				break
			}
		}
	}
	if least >= math.MaxInt64/4096*4096-4096 { // version 1 writes this for no limit
		return 0
	}
	return int64(float64(least) * share)
}

func readLimit(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max": no limit
	return limit, err == nil && limit > 0
}
