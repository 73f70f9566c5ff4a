package rest

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
)

// Certificates orders certificates, as acme.Watch does.
type Certificates interface {
	List() []acme.Certificate
	Ask(ctx context.Context, host string) ([]acme.Certificate, error)
}

// renewPath asks for a new certificate. It changes no configuration.
const renewPath = "/certificate/:host/renew"

func (s *server) addCertificates() {
	s.get("/certificate", s.listCertificates)
	s.post(renewPath, s.renewCertificate)
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
		return &model.Error{
			Kind: model.NotFound, Message: "this program orders no certificates: its configuration comes from Kubernetes",
			Hint: "cert-manager orders them there",
		}
	}
	asked, err := s.certificates.Ask(c.Request.Context(), c.Param("host"))
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_certificate", asked)
	return nil
}
