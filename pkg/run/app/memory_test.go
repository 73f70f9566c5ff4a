package app_test

import (
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
)

var _ = DescribeTable("The memory limit is a share of the smallest limit around the process",
	func(files map[string]string, want int64) {
		root := fstest.MapFS{}
		for name, text := range files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		Expect(app.MemoryLimit(root, 0.75)).To(Equal(want))
	},
	Entry("in a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, int64(402653184)),
	Entry("as a systemd service", map[string]string{
		"proc/self/cgroup":                                         "0::/system.slice/gatehouse.service\n",
		"sys/fs/cgroup/system.slice/memory.max":                    "4000\n",
		"sys/fs/cgroup/system.slice/gatehouse.service/memory.max":  "max\n",
		"sys/fs/cgroup/system.slice/gatehouse.service/memory.high": "1000\n",
	}, int64(3000)),
	Entry("in cgroup version 1", map[string]string{
		"proc/self/cgroup":                                    "12:pids:/docker/a\n5:cpu,memory:/docker/a\n0::/\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		"sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": "8000\n",
	}, int64(6000)),
	Entry("without a limit in cgroup version 1", map[string]string{
		"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
	}, int64(0)),
	Entry("without a limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, int64(0)),
	Entry("without control groups", map[string]string{}, int64(0)),
	Entry("with unexpected text in the files", map[string]string{"proc/self/cgroup": "x\n0::/../..\n", "sys/fs/cgroup/memory.max": "-3"}, int64(0)),
)
