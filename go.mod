module github.com/gatehouse-gateway/gatehouse

go 1.26.0
