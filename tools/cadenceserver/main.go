// Command cadenceserver is a Cadence server for tests, with all services in one process
// and SQLite as its store. It is a separate module, so that the platform does not depend on
// its dependencies.
//
//	cadenceserver --config DIR schema
//	cadenceserver --config DIR start --services frontend,history,matching,worker
//
// DIR is the folder of the configuration, such as config of this module. It takes the ports and
// the folder of the databases from environment variables.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/uber/cadence/cmd/server/cadence"
	"github.com/uber/cadence/common/config"
	"github.com/uber/cadence/common/metrics"
	_ "github.com/uber/cadence/common/persistence/sql/sqlplugin/sqlite" // the only store
	"github.com/uber/cadence/schema/sqlite"
	"github.com/uber/cadence/tools/common/commoncli"
	"github.com/uber/cadence/tools/common/schema"
	"github.com/uber/cadence/tools/sql"
	"github.com/urfave/cli/v2"
)

func main() {
	// SQLite returns times in the local zone, and Cadence compares them as text.
	time.Local = time.UTC
	app := cadence.BuildCLI(metrics.ReleaseVersion, metrics.Revision)
	app.Commands = append(app.Commands, &cli.Command{
		Name:   "schema",
		Usage:  "set up the tables of a new server",
		Action: func(c *cli.Context) error { return setUp(c.String("config")) },
	})
	commoncli.ExitHandler(app.Run(os.Args))
}

// setUp creates the tables of both stores of the configuration in folder dir.
func setUp(dir string) error {
	var cfg config.Config
	if err := config.Load("", dir, "", &cfg); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	for store, folder := range map[string]string{
		cfg.Persistence.DefaultStore:    "cadence",
		cfg.Persistence.VisibilityStore: "visibility",
	} {
		versions, err := fs.Sub(sqlite.SchemaFS, folder+"/versioned")
		if err != nil {
			return fmt.Errorf("find the schema: %w", err)
		}
		if err := setUpStore(cfg.Persistence.DataStores[store].SQL, versions); err != nil {
			return fmt.Errorf("set up the tables of %s: %w", store, err)
		}
	}
	return nil
}

func setUpStore(cfg *config.SQL, versions fs.FS) error {
	conn, err := sql.NewConnection(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	db := plainDatetime{conn}
	if err := schema.SetupFromConfig(&schema.SetupConfig{InitialVersion: "0.0"}, db); err != nil {
		return err
	}
	return schema.UpdateFromConfig(&schema.UpdateConfig{SchemaFS: versions}, db)
}

// plainDatetime is a connection that creates columns of type DATETIME instead of DATETIME(6).
// The driver treats DATETIME(6) as text, and timers are lost when texts of different lengths
// are compared.
type plainDatetime struct{ *sql.Connection }

func (p plainDatetime) ExecDDLQuery(stmt string, args ...any) error {
	return p.Connection.ExecDDLQuery(strings.ReplaceAll(stmt, "DATETIME(6)", "DATETIME"), args...)
}
