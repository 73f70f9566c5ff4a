package rest

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// Routes lists the routes of an API that New returned.
func Routes(api http.Handler) gin.RoutesInfo { return api.(*gin.Engine).Routes() }
