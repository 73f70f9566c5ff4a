-- +goose Up

-- What each replica tells the others of its Envoys (pkg/state/replicas); no part of the
-- configuration. It has no write-ahead log: after a crash of the server it is empty,
-- and every replica tells again. heard is by the clock of the database. report and
-- mail are compressed already.
CREATE UNLOGGED TABLE replica_report (
    replica      TEXT COLLATE "C" PRIMARY KEY,
    heard        TIMESTAMPTZ NOT NULL,
    ended        BOOLEAN NOT NULL DEFAULT false,
    version      BIGINT NOT NULL,
    report       BYTEA NOT NULL,
    mail_version BIGINT NOT NULL,
    mail         BYTEA NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE replica_report ALTER COLUMN report SET STORAGE EXTERNAL;
ALTER TABLE replica_report ALTER COLUMN mail SET STORAGE EXTERNAL;
