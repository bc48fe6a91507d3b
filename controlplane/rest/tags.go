package rest

import "github.com/danielgtaylor/huma/v2"

// documentTags returns the tags of the document. Each operation has one of them.
func documentTags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "activations", Description: "Runs of functions: their status, result and logs."},
		{Name: "aliases", Description: "Names of versions, such as prod."},
		{Name: "audit", Description: "The changes that keys made, and the reads of secrets."},
		{Name: "batches", Description: "Groups of jobs with a callback at their end."},
		{Name: "cadence", Description: "Bindings that run functions as activities of Cadence workflows."},
		{Name: "domains", Description: "Domains of tenants on which functions answer."},
		{Name: "functions", Description: "Functions, their drafts and the number of their calls."},
		{Name: "invoke", Description: "Run a function and read its result."},
		{Name: "jobs", Description: "Jobs: enqueue, fetch, settle and steer them."},
		{Name: "keys", Description: "API keys and their roles."},
		{Name: "providers", Description: "Providers of models that functions call, and routes over several of them."},
		{Name: "queues", Description: "Queues of jobs, their limits and their triggers."},
		{Name: "schedules", Description: "Functions and jobs that start at given times."},
		{Name: "secrets", Description: "Sealed values for functions. No operation returns a value."},
		{Name: "service", Description: "The server itself: probes, limits, the identity of the caller."},
		{Name: "storage", Description: "The document storage: installs, namespaces, documents and their changes."},
		{Name: "tasks", Description: "Work with steps and deadlines that workers claim."},
		{Name: "tenants", Description: "A tenant and its namespaces."},
		{Name: "versions", Description: "Published, immutable versions of functions."},
		{Name: "web", Description: "The HTTP endpoints of functions."},
	}
}
