package storage

// feeds tells those who follow a namespace that it changed.
type feeds struct{ s *Store }

func (f *feeds) wrote(DocumentPath) {}
