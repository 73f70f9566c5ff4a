package standalone

import (
	"io/fs"
	"strconv"
	"strings"
)

// zombies returns the children of a process that have ended and were not waited for;
// proc is /proc. On a system without /proc it returns none.
func zombies(proc fs.FS, parent int) (pids []int) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := fs.ReadFile(proc, e.Name()+"/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		// "17 (a name (that) may be anything) Z 1 ...": state and parent, see proc(5).
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}
