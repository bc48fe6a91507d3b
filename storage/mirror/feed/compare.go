package feed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/mirror"
)

// Compare compares every row of a mirror with the records of the store, and every record with the
// rows. It returns the differences, one for each record, and how many records there are. Nothing may
// change meanwhile. It is for tests of whole installations; db is that of mirror.OpenReader.
func Compare(ctx context.Context, store *storage.Store, jobs Jobs, db *sql.DB) (differences []string, records int, err error) {
	c := &comparison{ctx: ctx, store: store, jobs: jobs, db: db, seen: map[string]bool{}}
	tenants, _, err := storage.NewTenants(store).All(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, tenant := range tenants {
		if err := errors.Join(c.queues(tenant), c.functions(tenant)); err != nil {
			return nil, 0, err
		}
	}
	if err := c.rows("job", "SELECT tenant, id FROM jobs"); err != nil {
		return nil, 0, err
	}
	return c.differences, len(c.seen), c.rows("activation", "SELECT tenant, id FROM activations")
}

// comparison is one call of Compare.
type comparison struct {
	ctx         context.Context //nolint:containedctx // of the call
	store       *storage.Store
	jobs        Jobs
	db          *sql.DB
	seen        map[string]bool // the records of the store
	differences []string
}

func (c *comparison) note(kind, tenant, id, difference string) {
	if difference != "" {
		c.differences = append(c.differences, kind+" "+tenant+"/"+id+": "+difference)
	}
}

func (c *comparison) queues(tenant string) error {
	paths, _, err := c.jobs.Queues(c.ctx, tenant)
	if err != nil {
		return err
	}
	for _, path := range paths {
		namespace, queue, _ := strings.Cut(path, "/")
		for _, state := range api.JobStates() {
			for _, set := range c.jobs.Sets(tenant, namespace, queue, state) {
				ids, err := c.members(set)
				if err == nil {
					err = c.jobs.Read(c.ctx, tenant, ids, c.compareJobs)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *comparison) compareJobs(jobs []mirror.Job) error {
	for i := range jobs {
		if jobs[i].View == nil { // an entry without a job, which the sweeper removes
			continue
		}
		c.seen["job "+jobs[i].Tenant+"/"+jobs[i].ID] = true
		difference, err := mirror.JobDifference(c.ctx, c.db, jobs[i])
		if err != nil {
			return err
		}
		c.note("job", jobs[i].Tenant, jobs[i].ID, difference)
	}
	return nil
}

func (c *comparison) functions(tenant string) error {
	keys := c.store.Keys()
	namespaces, _, err := c.store.Members(c.ctx, keys.Namespaces(tenant))
	if err != nil {
		return err
	}
	for _, namespace := range namespaces {
		names, err := c.store.LexRange(c.ctx, keys.FunctionIndex(tenant, namespace), "", 1_000_000)
		if err != nil {
			return err
		}
		for _, name := range names {
			ids, err := c.members(keys.ActivationIndex(tenant, namespace, name))
			if err == nil {
				err = c.compareActivations(tenant, ids)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *comparison) compareActivations(tenant string, ids []string) error {
	found, err := activations.New(c.store).ReadMany(c.ctx, tenant, ids)
	if err != nil {
		return err
	}
	for i, record := range found {
		if record == nil {
			continue
		}
		a := mirror.Activation{Tenant: tenant, ID: ids[i], View: &record.Activation}
		a.Doc, err = api.EncodeJSON(a.View)
		if err != nil {
			return err
		}
		c.seen["activation "+tenant+"/"+ids[i]] = true
		difference, err := mirror.ActivationDifference(c.ctx, c.db, a)
		if err != nil {
			return err
		}
		c.note("activation", tenant, ids[i], difference)
	}
	return nil
}

// members returns all members of a sorted set.
func (c *comparison) members(set string) (ids []string, err error) {
	for from := ""; ; {
		page, next, err := c.jobs.Before(c.ctx, set, from, pageSize)
		ids = append(ids, page...)
		if err != nil || next == "" {
			return ids, err
		}
		from = next
	}
}

// rows notes the rows without a record.
func (c *comparison) rows(kind, query string) error {
	rows, err := c.db.QueryContext(c.ctx, query)
	if err != nil {
		return err
	}
	for rows.Next() {
		var tenant, id string
		if err := rows.Scan(&tenant, &id); err != nil {
			return errors.Join(err, rows.Close())
		}
		if !c.seen[fmt.Sprint(kind, " ", tenant, "/", id)] {
			c.note(kind, tenant, id, "got a row, want none: there is no record")
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
