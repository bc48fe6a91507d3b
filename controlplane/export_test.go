package controlplane

import "github.com/codesous/sous/controlplane/rest"

// Routes returns the routes that s answers.
func (s *Server) Routes() []rest.Route { return s.rest.Routes() }
