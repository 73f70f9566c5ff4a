package testkit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// booksProto is shop/books.proto: a descriptor as text.
const booksProto = `
name: "shop/books.proto" package: "shop" syntax: "proto3" dependency: "google/api/annotations.proto"
message_type { name: "Book"
  field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL json_name: "id" }
  field { name: "title" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "title" }
  field { name: "in_stock" number: 3 type: TYPE_BOOL label: LABEL_OPTIONAL json_name: "inStock" }
}
message_type { name: "Query"
  field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL json_name: "id" }
  field { name: "delay_ms" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "delayMs" }
}
message_type { name: "Change"
  field { name: "book" number: 1 type: TYPE_MESSAGE type_name: ".shop.Book" label: LABEL_OPTIONAL json_name: "book" }
}
message_type { name: "Page"
  field { name: "delay_ms" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL json_name: "delayMs" }
}
service { name: "Books"
  method { name: "GetBook" input_type: ".shop.Query" output_type: ".shop.Book"
    options { [google.api.http] { get: "/shop/books/{id}" additional_bindings { get: "/v1/books/{id}" } } } }
  method { name: "AddBook" input_type: ".shop.Book" output_type: ".shop.Book"
    options { [google.api.http] { post: "/shop/books" body: "*" } } }
  method { name: "ListBooks" input_type: ".shop.Page" output_type: ".shop.Book" server_streaming: true
    options { [google.api.http] { get: "/shop/books" } } }
  method { name: "ChangeBook" input_type: ".shop.Book" output_type: ".shop.Book"
    options { [google.api.http] { put: "/shop/books/{id}" body: "*" additional_bindings { put: "/v1/books/{id}" body: "*" } } } }
  method { name: "MoveBook" input_type: ".shop.Change" output_type: ".shop.Change"
    options { [google.api.http] { patch: "/v1/books/1/{book.id}" body: "book" } } }
  method { name: "CheckBook" input_type: ".shop.Book" output_type: ".shop.Book" }
}`

// Books is a gRPC server with the service shop.Books, which has the http rules above. Book 404 does not exist. Beyond
// 1000, the title of a book is as long as its id. delay_ms is how long an answer takes.
type Books struct {
	// Port and Calls are on 127.0.0.1, for HTTP/2 without TLS. On Port, other requests than gRPC are answered as by a
	// Backend.
	Port, Calls int

	server *http.Server
	calls  *grpc.Server
}

// StartBooks runs the server on free ports until Close.
func StartBooks() (*Books, error) {
	calls, err := booksServer()
	if err != nil {
		return nil, err
	}
	b := &Books{calls: calls, server: &http.Server{ReadHeaderTimeout: time.Minute, Protocols: &http.Protocols{}}}
	var listeners [2]net.Listener
	for i, port := range []*int{&b.Port, &b.Calls} {
		if *port, err = FreePort(); err != nil {
			return nil, err
		}
		if listeners[i], err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(*port))); err != nil { //nolint:noctx // is there at once
			return nil, fmt.Errorf("starting the books: %w", err)
		}
	}
	echo := &Backend{Name: "books"}
	b.server.Protocols.SetUnencryptedHTTP2(true)
	b.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, is := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc"); is &&
			(rest == "" || rest[0] == '+') {
			calls.ServeHTTP(w, r)
			return
		}
		echo.ServeHTTP(w, r)
	})
	go func() { _ = b.server.Serve(listeners[0]) }()
	go func() { _ = calls.Serve(listeners[1]) }()
	return b, nil
}

// Close closes all connections and stops the server.
func (b *Books) Close() {
	_ = b.server.Close()
	b.calls.Stop()
}

// BooksSet returns what protoc --include_imports --descriptor_set_out writes for shop/books.proto.
func BooksSet() []byte {
	set := &descriptorpb.FileDescriptorSet{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		for _, had := range set.GetFile() {
			if had.GetName() == f.Path() {
				return
			}
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	file, err := booksFile()
	if err != nil {
		panic(err) // the text above
	}
	add(annotations.File_google_api_annotations_proto)
	set.File = append(set.File, file)
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		panic(err)
	}
	return text
}

func booksFile() (*descriptorpb.FileDescriptorProto, error) {
	file := &descriptorpb.FileDescriptorProto{}
	return file, prototext.Unmarshal([]byte(booksProto), file)
}

// BooksMessage returns a new message of shop/books.proto: Book, Query, Change or Page.
func BooksMessage(name protoreflect.Name) (*dynamicpb.Message, error) {
	text, err := booksFile()
	if err != nil {
		return nil, err
	}
	file, err := protodesc.NewFile(text, protoregistry.GlobalFiles)
	if err != nil {
		return nil, fmt.Errorf("reading shop/books.proto: %w", err)
	}
	return dynamicpb.NewMessage(file.Messages().ByName(name)), nil
}

func booksServer() (*grpc.Server, error) {
	book, err := BooksMessage("Book")
	if err != nil {
		return nil, err
	}
	query, err := BooksMessage("Query")
	if err != nil {
		return nil, err
	}
	unary := func(name string, in protoreflect.MessageType, answer func(*dynamicpb.Message) (*dynamicpb.Message, error)) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			m := dynamicpb.NewMessage(in.Descriptor())
			if err := read(m); err != nil {
				return nil, err
			}
			waitFor(m)
			return answer(m)
		}}
	}
	change, err := BooksMessage("Change")
	if err != nil {
		return nil, err
	}
	same := func(m *dynamicpb.Message) (*dynamicpb.Message, error) { return m, nil }
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "shop.Books", HandlerType: nil,
		Methods: []grpc.MethodDesc{
			unary("GetBook", query.Type(), func(m *dynamicpb.Message) (*dynamicpb.Message, error) {
				return getBook(book, numberOf(m, "id"))
			}),
			unary("AddBook", book.Type(), same), unary("ChangeBook", book.Type(), same), unary("MoveBook", change.Type(), same),
			unary("CheckBook", book.Type(), same),
		},
		Streams: []grpc.StreamDesc{{StreamName: "ListBooks", ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			m := dynamicpb.NewMessage(query.Descriptor()) // a page has no id
			if err := stream.RecvMsg(m); err != nil {
				return err
			}
			for id := range int64(2) {
				one, err := getBook(book, id+1)
				if err != nil {
					return err
				}
				if err := stream.SendMsg(one); err != nil {
					return err
				}
				waitFor(m)
			}
			return nil
		}}},
	}, nil)
	return s, nil
}

// waitFor waits as long as a message says, regardless of the client's timeout.
func waitFor(m *dynamicpb.Message) {
	<-time.After(time.Duration(numberOf(m, "delay_ms")) * time.Millisecond)
}

// numberOf returns a number; 0 for a message without the field.
func numberOf(m *dynamicpb.Message, field protoreflect.Name) int64 {
	f := m.Descriptor().Fields().ByName(field)
	if f == nil {
		return 0
	}
	return m.Get(f).Int()
}

func getBook(book *dynamicpb.Message, id int64) (*dynamicpb.Message, error) {
	if id == 404 {
		return nil, status.Error(codes.NotFound, "no book has the id 404")
	}
	one := dynamicpb.NewMessage(book.Descriptor())
	fields := one.Descriptor().Fields()
	one.Set(fields.ByName("id"), protoreflect.ValueOfInt64(id))
	title := fmt.Sprint("Book ", id)
	if id > 1000 {
		title = strings.Repeat("a", int(id))
	}
	one.Set(fields.ByName("title"), protoreflect.ValueOfString(title))
	return one, nil
}
