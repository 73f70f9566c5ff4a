package rest

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/logintest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// LoginTest tests the login of a service.
type LoginTest func(context.Context, *logintest.Subject) logintest.Result

// loginTestPath is the path of the only POST that changes nothing.
const loginTestPath = "/service/:service/login/test"

// addLoginTest registers a POST, because the call sends requests to an identity provider
// with the client's secret.
func (s *server) addLoginTest() { s.post(loginTestPath, s.testLogin) }

func (s *server) testLogin(c *gin.Context) error {
	query, err := readQuery(c, []string{"proxy", "url"})
	if err != nil {
		return err
	}
	if s.loginTest == nil {
		return &model.Error{Kind: model.Unavailable, Message: "this program cannot test logins"}
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var subject *logintest.Subject
	err = s.read(c.Request.Context(), func(r store.Reader) (err error) {
		subject, err = logintest.Find(r, n[model.KindService], query.Get("proxy"), query.Get("url"))
		return err
	})
	if err != nil {
		return err
	}
	s.answer(c, s.word+"_login_test", []logintest.Result{s.loginTest(c.Request.Context(), subject)})
	return nil
}
