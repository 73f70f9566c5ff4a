package testkit

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// StartNginx runs nginx with these server blocks in its http block, in a directory, until Kill. It returns when the port
// answers.
func StartNginx(ctx context.Context, dir string, port int, servers string) (*Process, error) {
	path, err := Binary("nginx")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log %[1]s/error.log;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  %[2]s
}
`, dir, servers)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := startProcess(path, nil, "-p", dir, "-c", config)
	if err != nil {
		return nil, err
	}
	err = p.await(ctx, "nginx", func() error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			err = c.Close()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, p.Stderr)
	}
	return p, nil
}
