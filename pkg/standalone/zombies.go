package standalone

import (
	"io/fs"
	"strconv"
	"strings"
)

// zombies are the children of a process that have ended and that nobody has waited
// for; proc is /proc. A system that has none has none to tell.
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
