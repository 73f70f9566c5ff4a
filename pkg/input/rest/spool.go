package rest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool keeps an answer until all of it is made, so that nothing that others
// need is held while a client reads: in memory, and from largeAnswer on in a
// file. The file has no name, so that nothing of it stays behind.
type spool struct {
	memory bytes.Buffer
	file   *os.File
	size   int64
}

// Write implements io.Writer.
func (s *spool) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	if s.file == nil && s.memory.Len()+len(b) <= largeAnswer {
		return s.memory.Write(b)
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(b)
	if err != nil {
		return n, fmt.Errorf("keeping an answer in %s: %w", os.TempDir(), err)
	}
	return n, nil
}

// open makes the file and moves there what is in memory.
func (s *spool) open() (err error) {
	if s.file, err = os.CreateTemp("", "gatehouse-answer-"); err != nil {
		return fmt.Errorf("keeping an answer of more than %d bytes: %w; TMPDIR names another directory", largeAnswer, err)
	}
	if err := os.Remove(s.file.Name()); err != nil {
		return fmt.Errorf("keeping an answer in a file without a name: %w", err)
	}
	_, err = s.memory.WriteTo(s.file)
	s.memory = bytes.Buffer{}
	if err != nil {
		return fmt.Errorf("keeping an answer in %s: %w", os.TempDir(), err)
	}
	return nil
}

// send writes all of it.
func (s *spool) send(w io.Writer) error {
	if s.file == nil {
		_, err := s.memory.WriteTo(w)
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading a kept answer: %w", err)
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{s.file}, make([]byte, paceBytes))
	return err
}

// bytes returns all of it.
func (s *spool) bytes() ([]byte, error) {
	all := bytes.NewBuffer(make([]byte, 0, s.size))
	err := s.send(all)
	return all.Bytes(), err
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	if err := s.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("closing a kept answer: %w", err)
	}
	return nil
}
