package testkit

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	procv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Processor is an external processor (envoy.service.ext_proc.v3). It sets x-processed in requests and
// x-done in answers, and converts their bodies to upper case. Headers of the request change that:
// X-Deny is the status of an answer of its own, 500 an error; X-Delay is how long it waits, X-Set a
// header that it sets in the request, "name=value".
type Processor struct {
	// Port is on 127.0.0.1.
	Port int

	server *grpc.Server
}

// StartProcessor runs the processor on a free port until Close.
func StartProcessor() (*Processor, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // is there at once
	if err != nil {
		return nil, fmt.Errorf("starting the processor: %w", err)
	}
	p := &Processor{port, grpc.NewServer()}
	procv3.RegisterExternalProcessorServer(p.server, processorCalls{})
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// Close closes all connections and stops the processor.
func (p *Processor) Close() { p.server.Stop() }

type processorCalls struct{}

// Process implements procv3.ExternalProcessorServer: one call for each request.
func (processorCalls) Process(call procv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := call.Recv()
		if err != nil {
			return nil //nolint:nilerr // the request is over
		}
		answer, err := process(m)
		if err != nil {
			return err
		}
		if err := call.Send(answer); err != nil {
			return err
		}
	}
}

func process(m *procv3.ProcessingRequest) (*procv3.ProcessingResponse, error) {
	switch r := m.GetRequest().(type) {
	case *procv3.ProcessingRequest_RequestHeaders:
		return processRequest(r.RequestHeaders)
	case *procv3.ProcessingRequest_ResponseHeaders:
		return &procv3.ProcessingResponse{Response: &procv3.ProcessingResponse_ResponseHeaders{
			ResponseHeaders: &procv3.HeadersResponse{Response: setHeaders("x-done=yes")},
		}}, nil
	case *procv3.ProcessingRequest_RequestBody:
		return &procv3.ProcessingResponse{Response: &procv3.ProcessingResponse_RequestBody{RequestBody: upper(r.RequestBody)}}, nil
	case *procv3.ProcessingRequest_ResponseBody:
		return &procv3.ProcessingResponse{Response: &procv3.ProcessingResponse_ResponseBody{ResponseBody: upper(r.ResponseBody)}}, nil
	}
	return nil, status.Errorf(codes.Unimplemented, "nobody has asked for a %T", m.GetRequest())
}

func processRequest(r *procv3.HttpHeaders) (*procv3.ProcessingResponse, error) {
	set := []string{"x-processed=yes"}
	var deny int
	var details string
	for _, h := range r.GetHeaders().GetHeaders() {
		value := h.GetValue() + string(h.GetRawValue())
		switch h.GetKey() {
		case "x-deny":
			deny, _ = strconv.Atoi(value)
		case "x-details":
			details = value
		case "x-delay":
			d, _ := time.ParseDuration(value)
			time.Sleep(d)
		case "x-set":
			set = append(set, value)
		}
	}
	switch deny {
	case 0:
		return &procv3.ProcessingResponse{Response: &procv3.ProcessingResponse_RequestHeaders{
			RequestHeaders: &procv3.HeadersResponse{Response: setHeaders(set...)},
		}}, nil
	case 500:
		return nil, status.Error(codes.Internal, "the processor fails")
	}
	return &procv3.ProcessingResponse{Response: &procv3.ProcessingResponse_ImmediateResponse{ImmediateResponse: &procv3.ImmediateResponse{
		Status: &typev3.HttpStatus{Code: typev3.StatusCode(deny)}, Body: []byte("the processor says no\n"), Details: details, //nolint:gosec // a status code
	}}}, nil
}

func setHeaders(pairs ...string) *procv3.CommonResponse {
	m := &procv3.HeaderMutation{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		m.SetHeaders = append(m.SetHeaders, &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: name, RawValue: []byte(value)},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return &procv3.CommonResponse{HeaderMutation: m}
}

func upper(b *procv3.HttpBody) *procv3.BodyResponse {
	return &procv3.BodyResponse{Response: &procv3.CommonResponse{BodyMutation: &procv3.BodyMutation{
		Mutation: &procv3.BodyMutation_Body{Body: bytes.ToUpper(b.GetBody())},
	}}}
}
