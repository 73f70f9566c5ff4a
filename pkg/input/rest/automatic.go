package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
)

// Certificates orders certificates, as acme.Watch does.
type Certificates interface {
	List() []acme.Certificate
	Ask(ctx context.Context, host string) ([]acme.Certificate, error)
	// StartTest and TestOf are about tests of a host. by is who asks; empty means an admin.
	StartTest(ctx context.Context, host, by string) (acme.Test, error)
	TestOf(ctx context.Context, host string) (acme.Test, error)
}

// renewPath asks for a new certificate. It changes no configuration.
const renewPath = "/certificate/:host/renew"

// testPath tests whether a certificate could be ordered.
const testPath = "/certificate/:host/test"

func (s *server) addCertificates() {
	s.get("/certificate", s.listCertificates)
	s.post(renewPath, s.renewCertificate)
	s.get(testPath, s.readCertificateTest)
	// It changes no configuration, and checks itself what an editor may.
	s.change(http.MethodPost, testPath, s.testCertificate)
}

func (s *server) listCertificates(c *gin.Context) error {
	if _, err := readQuery(c, nil); err != nil {
		return err
	}
	list := []acme.Certificate{}
	if s.certificates != nil {
		list = s.certificates.List()
	}
	s.answer(c, s.word+"_certificate", list)
	return nil
}

func (s *server) renewCertificate(c *gin.Context) error {
	if _, err := readQuery(c, nil); err != nil {
		return err
	}
	if s.certificates == nil {
		return ordersNone()
	}
	host, err := hostParam(c)
	if err != nil {
		return err
	}
	asked, err := s.certificates.Ask(c.Request.Context(), host)
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_certificate", asked)
	return nil
}

// hostParam is the host in a path; a client may have escaped the "*" of a wildcard.
func hostParam(c *gin.Context) (string, error) {
	host, err := url.PathUnescape(c.Param("host"))
	if err != nil || len(host) > mostHost {
		return "", &model.Error{Kind: model.NotFound, Message: "the path has no host name"}
	}
	return host, nil
}

// mostHost bounds the host in a path, in bytes.
const mostHost = 255

func ordersNone() error {
	return &model.Error{
		Kind: model.NotFound, Message: "this program orders no certificates: its configuration comes from Kubernetes",
		Hint: "cert-manager orders them there",
	}
}

func (s *server) testCertificate(c *gin.Context) error {
	if _, err := readQuery(c, nil); err != nil {
		return err
	}
	if s.certificates == nil {
		return ordersNone()
	}
	host, err := hostParam(c)
	if err != nil {
		return err
	}
	by := ""
	if !s.isAdmin(c) {
		if err := s.checkOwnHost(c, host); err != nil {
			return err
		}
		by = actorOf(c)
	}
	test, err := s.certificates.StartTest(c.Request.Context(), host, by)
	if many, is := errors.AsType[*acme.TooManyTests](err); is {
		c.Header("Retry-After", strconv.Itoa(int(max(many.After, time.Second)/time.Second)))
		return refusal(http.StatusTooManyRequests, "too_many_requests", "Too many tests", many.Message)
	}
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_certificate_test", []acme.Test{test})
	return nil
}

func (s *server) readCertificateTest(c *gin.Context) error {
	if _, err := readQuery(c, nil); err != nil {
		return err
	}
	if s.certificates == nil {
		return ordersNone()
	}
	host, err := hostParam(c)
	if err != nil {
		return err
	}
	test, err := s.certificates.TestOf(c.Request.Context(), host)
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_certificate_test", []acme.Test{test})
	return nil
}

// checkOwnHost refuses an editor unless a service with the host is its own.
func (s *server) checkOwnHost(c *gin.Context, host string) error {
	var services []string
	for _, known := range s.certificates.List() {
		if strings.EqualFold(known.Host, host) {
			services = append(services, known.Service)
		}
	}
	own := false
	err := s.read(c.Request.Context(), func(r store.Reader) error {
		for _, name := range services {
			o, err := r.Get(model.ServiceKey(name))
			if err != nil && !model.IsKind(err, model.NotFound) {
				return err
			}
			own = own || err == nil && identityOf(c).team.Owns(o)
		}
		return nil
	})
	if err == nil && !own {
		err = &model.Error{Kind: model.Forbidden, Message: "no service of yours has the host " + shorten(host) + " and Certificate=auto"}
	}
	return err
}
